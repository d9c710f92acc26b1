internal import WatchwordProtocol

/// Finds the credentials of the session, and determines which of them is the default of its space.
extension SessionCache {
    /// Returns the credential of `user` for exactly this space, or the default of the space if `user` is `nil`. Returns
    /// `nil` if that credential is doubted (`SessionEntry.isDoubted`), or if a staged credential takes precedence.
    /// - Parameter scope: the scope that a token needs; `nil` if unknown (SEMANTICS rule 29).
    func credential(
        for space: ProtectionSpace, user: Account? = nil, owner: Partition? = nil, at challenger: Challenger,
        path: ExactText = "/", scope: BearerScope? = nil, now: Duration
    ) -> LoginCredential? {
        let logins = accepted[challenger]
        var list = logins.list(of: owner, in: space).covering(path)
        if let scope {
            let covering = list.filter { $0.credential.scope?.covers(scope) ?? false }
            list = covering.isEmpty ? list.filter { $0.credential.scope == nil } : covering
        }
        let entry = defaultEntry(of: space, user: user, in: list, now: now)
        guard let entry, !entry.isDoubted else { return nil }
        return isOutranked(entry, for: user, path: path, now: now) ? nil : entry.credential
    }

    /// Returns the staged credential that ranks first for this space.
    func stagedCredential(
        for space: ProtectionSpace, user: Account?, owner: Partition? = nil, path: ExactText = "/", now: Duration,
        where matches: (SpacePattern) -> Bool = { _ in true }
    ) -> LoginCredential? {
        let fitting = waiting(for: space, owner: owner, path: path, now: now).filter {
            matches($0.pattern) && (user?.admits($0.credential.account) ?? true)
        }
        return fitting.min { $0.precedes($1) }?.credential
    }

    /// Whether a login of the session may precede `credential` at this path (`LoginCredential.mayPrecede`).
    func mayBeNarrower(
        than credential: LoginCredential, at challenger: Challenger, of owner: Partition?, user: Account?,
        path: ExactText, now: Duration
    ) -> Bool {
        let length = credential.pathLength
        let isAccepted = accepted[challenger].list(of: owner, near: path).contains {
            $0.credential.mayPrecede(length, at: path, for: user) && isValid($0, now)
        }
        if isAccepted || staged.isEmpty { return isAccepted }
        let staged = staged[challenger]
        return staged.positions(near: path).map { staged[$0] }.contains {
            $0.owner == owner && $0.credential.mayPrecede(length, at: path, for: user) && isValid($0, now)
        }
    }

    /// Returns the staged credentials for `space`, unless the same account already has an accepted credential for the
    /// same path.
    private func waiting(
        for space: ProtectionSpace, owner: Partition?, path: ExactText, now: Duration
    ) -> [StagedCredential] {
        guard !staged.isEmpty else { return [] }
        let fitting = staged[Challenger(space)].list(for: space).filter {
            $0.owner == owner && $0.credential.covers(path) && isValid($0, now)  // guard: session-owner-of-given
        }
        guard !fitting.isEmpty else { return [] }
        let accepted = accepted[Challenger(space)].list(of: owner, in: space).filter { isValid($0, now) }
        return fitting.filter { one in
            !accepted.contains {
                $0.credential.account == one.credential.account && $0.credential.isForSamePart(as: one.credential)
            }
        }
    }

    /// Whether a staged credential takes precedence over `entry`, by a narrower path or as the default (SEMANTICS rule
    /// 18).
    private func isOutranked(_ entry: AcceptedLogin, for user: Account?, path: ExactText, now: Duration) -> Bool {
        return waiting(for: entry.space, owner: entry.owner, path: path, now: now).contains { one in
            guard one.credential.form == entry.credential.form, user?.admits(one.credential.account) ?? true else {
                return false
            }
            let (own, others) = (entry.credential.pathLength, one.credential.pathLength)
            return own == others ? one.rank.precedes(entry.rank) : own < others
        }
    }

    /// Returns all credentials with the narrowest path for exactly this space, and their numbers: accepted ones, then
    /// staged ones whose pattern satisfies `matches`.
    func choices(
        for space: ProtectionSpace, user: Account?, owner: Partition?, at challenger: Challenger, path: ExactText,
        now: Duration, where matches: (SpacePattern) -> Bool
    ) -> [(number: Int, credential: LoginCredential)] {
        let accepted = accepted[challenger].list(of: owner, in: space).covering(path).filter { isValid($0, now) }
        let waiting = waiting(for: space, owner: owner, path: path, now: now).filter { matches($0.pattern) }
        let all = accepted.map { ($0.number, $0.credential) } + waiting.map { ($0.number, $0.credential) }
        let named = all.filter { user?.admits($0.1.account) ?? true }
        let narrowest = named.map(\.1.pathLength).max()
        let chosen = named.filter { $0.1.pathLength == narrowest }
        let isClear = chosen.allSatisfy {
            !mayBeNarrower(than: $0.1, at: challenger, of: owner, user: user, path: path, now: now)
        }
        return isClear ? chosen : []
    }

    /// Returns a password for any of these spaces, or a token if they are for Bearer. Prefers the space with the
    /// longest matching path, then the default of that space. A staged credential is used if none was accepted, or if
    /// its path is narrower.
    func credential(
        for pattern: SpacePattern, user: Account?, owner: Partition?, path: ExactText, now: Duration
    ) -> LoginCredential? {
        let challenger = Challenger(pattern)
        let list = accepted[challenger].list(of: owner).covering(path)
        let form: LoginCredential.Form = pattern.authenticationMethod == .bearer ? .token : .password
        let fitting = list.filter { entry in
            entry.credential.form == form && isValid(entry, now)
                && challenger.mayRelease(passwordFor: entry.space.authenticationMethod)
                && pattern.contains(SpacePattern(entry.space))
                && isDefault(entry, for: user, among: list, path: path, now: now)
                && (user?.admits(entry.credential.account) ?? true)
        }
        let waiting = staged[challenger].filter { entry in
            entry.credential.form == form && entry.owner == owner && entry.pattern.overlaps(pattern)
                && challenger.mayRelease(passwordFor: entry.pattern.authenticationMethod)
                && (user?.admits(entry.credential.account) ?? true) && entry.credential.covers(path)
                && isValid(entry, now)
        }
        let narrowest = waiting.map(\.credential.pathLength).max()
        let untried = waiting.filter { $0.credential.pathLength == narrowest }
            .min { $0.rank.precedes($1.rank) }?.credential
        let best = fitting.max { ($0.value.matchLength(of: path) ?? -1) < ($1.value.matchLength(of: path) ?? -1) }?
            .credential
        let chosen =
            best.map { best in untried.flatMap { $0.pathLength > best.pathLength ? $0 : nil } ?? best } ?? untried
        guard let chosen,
            !mayBeNarrower(than: chosen, at: challenger, of: owner, user: user, path: path, now: now)
        else { return nil }
        return chosen
    }

    /// Returns the entry whose credential may be sent before a challenge; the longest matching path wins. NTLM and
    /// Negotiate are excluded: they authenticate connections, and only after a challenge.
    func preemptiveEntry(
        at challenger: Challenger, path: ExactText, user: Account? = nil, owner: Partition? = nil, now: Duration
    ) -> AcceptedLogin? {
        let logins = accepted[challenger]
        let candidates = logins.list(of: owner, near: path).covering(path)
        var best: (entry: AcceptedLogin, length: Int)?
        let isOnly = logins.count == 1 && staged.isEmpty
        // Set if several tokens match equally; only the server's challenge says which one is needed.
        var isAmbiguous = false
        for entry in candidates where isValid(entry, now) {
            guard let length = entry.value.matchLength(of: path), length >= best?.length ?? -1 else { continue }
            // guard: attempt-doubted, no-challenge-not-sent-unasked-again
            if entry.value.isHandshake || entry.value.isDoubted || entry.value.isWithheld(at: path) { continue }
            let scope = entry.value.credential.scope
            guard length > best?.length ?? -1 || scope != best?.entry.value.credential.scope else { continue }
            guard isOnly || isDefault(entry, for: user, scope, path: path, now: now) else { continue }
            isAmbiguous = best.map { length == $0.length && !entry.credential.isSame(as: $0.entry.credential) } ?? false
            best = (entry, length)
        }
        if isAmbiguous { return nil }
        guard let entry = best?.entry, user?.admits(entry.value.credential.account) ?? true else { return nil }
        // A server might read the path as one in another space.
        let mayBeOfAnother = candidates.contains {
            $0.value.matchLength(of: path, isPossible: true) ?? -1 > best?.length ?? -1 && isValid($0, now)
                && $0.value.space != entry.value.space
        }
        return mayBeOfAnother ? nil : entry
    }

    /// Returns an entry that would be sent before a challenge at another path, but not at this one (`SessionEntry.withheld`).
    func withheldEntry(
        at challenger: Challenger, path: ExactText, user: Account? = nil, owner: Partition? = nil, now: Duration
    ) -> AcceptedLogin? {
        accepted[challenger].list(of: owner, near: path).covering(path).first { entry in
            entry.value.isWithheld(at: path) && isValid(entry, now) && user?.admits(entry.credential.account) ?? true
        }
    }

    func isValid(_ entry: AcceptedLogin, _ now: Duration) -> Bool {
        limits.allow(entry.value.credential, since: entry.value.since, lastUse: entry.lastUse, now: now, wallTime)
    }

    func isValid(_ entry: StagedCredential, _ now: Duration) -> Bool {
        limits.allow(entry.credential, since: entry.since, lastUse: entry.since, now: now, wallTime)
    }

    /// Whether the entry is the default among those of its space with this scope.
    private func isDefault(
        _ entry: AcceptedLogin, for user: Account?, _ scope: BearerScope?, path: ExactText, now: Duration
    ) -> Bool {
        let equals = accepted[entry.value.challenger].list(of: entry.value.owner, in: entry.value.space)
            .covering(path).filter { $0.value.credential.scope == scope }
        return isDefault(entry, for: user, among: equals, path: path, now: now)
    }

    private func isDefault(
        _ entry: AcceptedLogin, for user: Account?, among list: [AcceptedLogin], path: ExactText,
        now: Duration
    ) -> Bool {
        defaultEntry(of: entry.space, user: user, in: list, now: now)?.number == entry.number
            && !isOutranked(entry, for: user, path: path, now: now)
    }

    private func defaultEntry(
        of space: ProtectionSpace, user: Account?, in list: [AcceptedLogin], now: Duration
    ) -> AcceptedLogin? {
        let fitting = list.lazy.filter {
            $0.space == space && (user?.admits($0.credential.account) ?? true) && isValid($0, now)
        }
        // A credential for a narrower path precedes one for the whole server (SEMANTICS rule 18).
        return fitting.min {
            let (own, others) = ($0.credential.pathLength, $1.credential.pathLength)
            return own == others ? $0.rank.precedes($1.rank) : own > others
        }
    }

    /// Returns the credential for exactly this space if its refusal is doubtful (see `SessionEntry.isDoubted`).
    func doubtedCredential(
        for space: ProtectionSpace, user: Account?, owner: Partition?, now: Duration
    ) -> LoginCredential? {
        let list = accepted[Challenger(space)].list(of: owner, in: space)
        let entry = defaultEntry(of: space, user: user, in: list, now: now)
        return entry.flatMap { $0.isDoubted ? $0.credential : nil }
    }

    /// Returns when the server last accepted exactly this credential (see `AcceptedLogin.provenAt`); `nil` if unknown.
    func provenAt(_ credential: LoginCredential, for space: ProtectionSpace, owner: Partition?) -> Duration? {
        login(with: credential, for: space, owner: owner)?.provenAt
    }

    /// Returns the challenge for which the server last accepted exactly this credential; `nil` if unknown.
    func digest(of credential: LoginCredential, for space: ProtectionSpace, owner: Partition?) -> DigestChallenge? {
        login(with: credential, for: space, owner: owner)?.digest
    }

    private func login(with credential: LoginCredential, for space: ProtectionSpace, owner: Partition?)
        -> AcceptedLogin?
    {
        accepted[Challenger(space)].list(of: owner, in: space).first { $0.credential.isSame(as: credential) }
    }

    /// Whether `holder` has provided exactly this credential to the shared partition.
    func wasProvided(_ credential: LoginCredential, for space: ProtectionSpace, by holder: ConsentBook.Holder) -> Bool {
        accepted[Challenger(space)].list(of: nil, in: space).contains { entry in
            entry.credential.isSame(as: credential) && entry.providers.contains { $0.isSame(as: holder) }
        }
    }

    /// Whether the entry is the default among those for the same path.
    func isDefault(_ entry: AcceptedLogin, now: Duration) -> Bool {
        let equals = accepted[entry.value.challenger].list(of: entry.owner, in: entry.space).filter {
            $0.credential.isForSamePart(as: entry.credential)
        }
        return isDefault(entry, for: nil, among: equals, path: entry.credential.path ?? "/", now: now)
    }

    func isDefault(_ entry: StagedCredential, now: Duration) -> Bool {
        let logins = staged[Challenger(entry.pattern)]
        let equals = logins.positions(in: [entry.realm]).map { logins[$0] }.filter {
            $0.pattern == entry.pattern && $0.owner == entry.owner && $0.credential.isForSamePart(as: entry.credential)
                && isValid($0, now)
        }
        guard !equals.contains(where: { $0.rank.precedes(entry.rank) }) else { return false }
        return !accepted[Challenger(entry.pattern)].list(of: entry.owner).contains {
            entry.pattern.matches($0.space) && isValid($0, now) && $0.credential.form == entry.credential.form
                && $0.credential.isForSamePart(as: entry.credential)
                && ($0.credential.account == entry.credential.account || $0.rank.precedes(entry.rank))
        }
    }

    /// Returns all entries without their secrets, oldest first.
    func listing(now: Duration) -> [SessionListing] {
        let accepted = accepted.all.filter { isValid($0, now) }
            .map { SessionListing($0, isDefault: isDefault($0, now: now)) }
        let waiting = staged.all.filter { isValid($0, now) }
            .map { SessionListing($0, isDefault: isDefault($0, now: now)) }
        return (accepted + waiting).sorted { $0.number < $1.number }
    }
}
