import WatchwordProtocol

@testable import WatchwordCore

/// The searches of the session cache, which look at every login of a server.
struct PlainSearch {
    let accepted: [AcceptedLogin]
    let staged: [StagedCredential]
    let isValid: (AcceptedLogin) -> Bool
    let isValidStaged: (StagedCredential) -> Bool
    let owner: Partition?
    let user: Account?
    let path: ExactText

    init(
        _ cache: SessionCache, at challenger: Challenger, _ owner: Partition?, _ user: Account?, _ path: ExactText,
        now: Duration
    ) {
        accepted = cache.accepted[challenger].filter { $0.owner == owner }
        staged = cache.staged[challenger].filter { $0.owner == owner }
        isValid = { cache.isValid($0, now) }
        isValidStaged = { cache.isValid($0, now) }
        (self.owner, self.user, self.path) = (owner, user, path)
    }

    private var candidates: [AcceptedLogin] { accepted.filter { $0.credential.covers(path) } }

    func preemptive() -> Int? {
        var best: (login: AcceptedLogin, length: Int)?
        var isAmbiguous = false
        for login in candidates where isValid(login) {
            guard let length = login.value.matchLength(of: path), length >= best?.length ?? -1 else { continue }
            if login.isHandshake || login.isDoubted || login.value.isWithheld(at: path) { continue }
            let scope = login.credential.scope
            guard length > best?.length ?? -1 || scope != best?.login.credential.scope else { continue }
            let equals = candidates.filter { $0.space == login.space && $0.credential.scope == scope }
            guard first(in: login.space, of: equals)?.number == login.number, !isOutranked(login) else { continue }
            isAmbiguous = best.map { length == $0.length && !login.credential.isSame(as: $0.login.credential) } ?? false
            best = (login, length)
        }
        guard !isAmbiguous, let best, user?.admits(best.login.credential.account) ?? true else { return nil }
        let mayBeOfAnother = candidates.contains {
            $0.value.matchLength(of: path, isPossible: true) ?? -1 > best.length && isValid($0)
                && $0.space != best.login.space
        }
        return mayBeOfAnother ? nil : best.login.number
    }

    func withheld() -> Int? {
        candidates.first {
            $0.value.isWithheld(at: path) && isValid($0) && user?.admits($0.credential.account) ?? true
        }?.number
    }

    func mayBeNarrower(than credential: LoginCredential) -> Bool {
        let length = credential.pathLength
        return accepted.contains { $0.credential.mayPrecede(length, at: path, for: user) && isValid($0) }
            || staged.contains { $0.credential.mayPrecede(length, at: path, for: user) && isValidStaged($0) }
    }

    func credential(for space: ProtectionSpace, scope: BearerScope?) -> LoginCredential? {
        var list = candidates.filter { $0.space == space }
        if let scope {
            let covering = list.filter { $0.credential.scope?.covers(scope) ?? false }
            list = covering.isEmpty ? list.filter { $0.credential.scope == nil } : covering
        }
        guard let login = first(in: space, of: list), !login.isDoubted, !isOutranked(login) else { return nil }
        return login.credential
    }

    func doubted(in space: ProtectionSpace) -> LoginCredential? {
        first(in: space, of: accepted).flatMap { $0.isDoubted ? $0.credential : nil }
    }

    func stagedCredential(for space: ProtectionSpace) -> LoginCredential? {
        waiting(for: space).filter { user?.admits($0.credential.account) ?? true }.min { $0.precedes($1) }?.credential
    }

    func choices(for space: ProtectionSpace) -> [Int] {
        let found =
            candidates.filter { $0.space == space && isValid($0) }.map { ($0.number, $0.credential) }
            + waiting(for: space).map { ($0.number, $0.credential) }
        let named = found.filter { user?.admits($0.1.account) ?? true }
        let narrowest = named.map(\.1.pathLength).max()
        let chosen = named.filter { $0.1.pathLength == narrowest }
        return chosen.contains { mayBeNarrower(than: $0.1) } ? [] : chosen.map(\.0)
    }

    /// Returns the numbers of the logins with this credential.
    func logins(with credential: LoginCredential, in space: ProtectionSpace) -> [AcceptedLogin] {
        accepted.filter { $0.space == space && $0.credential.isSame(as: credential) }
    }

    /// Returns the login that a newly accepted credential replaces or renews.
    func login(replacedBy credential: LoginCredential, in space: ProtectionSpace) -> AcceptedLogin? {
        let former =
            credential.form == .token
            ? accepted.first { $0.space == space && $0.former?.matches(credential) == true } : nil
        return former
            ?? accepted.first {
                $0.space == space && $0.credential.account == credential.account
                    && $0.credential.isForSamePart(as: credential)
            }
    }

    private func waiting(for space: ProtectionSpace) -> [StagedCredential] {
        staged.filter { one in
            one.pattern.matches(space) && one.credential.covers(path) && isValidStaged(one)
                && !accepted.contains {
                    $0.space == space && isValid($0) && $0.credential.account == one.credential.account
                        && $0.credential.isForSamePart(as: one.credential)
                }
        }
    }

    private func isOutranked(_ login: AcceptedLogin) -> Bool {
        waiting(for: login.space).contains { one in
            guard one.credential.form == login.credential.form, user?.admits(one.credential.account) ?? true else {
                return false
            }
            let (own, others) = (login.credential.pathLength, one.credential.pathLength)
            return own == others ? one.rank.precedes(login.rank) : own < others
        }
    }

    private func first(in space: ProtectionSpace, of list: [AcceptedLogin]) -> AcceptedLogin? {
        let fitting = list.filter {
            $0.space == space && (user?.admits($0.credential.account) ?? true) && isValid($0)
        }
        let narrowest = fitting.map(\.credential.pathLength).max()
        return fitting.filter { $0.credential.pathLength == narrowest }.min { $0.rank.precedes($1.rank) }
    }
}
