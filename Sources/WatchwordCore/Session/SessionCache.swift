internal import WatchwordProtocol

/// The credentials of the session, by protection space and user: accepted credentials, with the paths and Digest
/// nonces they were accepted for, and staged credentials that no server has seen.
///
/// All times are durations since one arbitrary start and never decrease. Bounded in total, per server and per
/// partition: the least recently used entry is evicted.
public struct SessionCache: Sendable {
    private(set) var accepted = AcceptedCredentials()
    /// The credentials staged by `credential/store`, not tried yet.
    private(set) var staged = ChallengerTable<IndexedLogins<StagedCredential>>()
    /// The nonce counts of all fetches, including those without storage: nonces are not credentials.
    var nonces = DigestNonces()
    /// The number of accepted credentials; staged ones are not included.
    public var count: Int { accepted.count }
    /// Whether there are neither accepted nor staged credentials.
    var isEmpty: Bool { count == 0 && staged.isEmpty }
    private var lastNumber = 0
    public var limits: SessionLimits {
        didSet { nextEnd = .unknown }
    }
    /// No credential is over before.
    private var nextEnd = NextEnd.unknown
    /// The wall-clock time of the last event, since 1970, which decides whether a credential has expired.
    var wallTime = Duration.zero

    public init(limits: SessionLimits = SessionLimits()) { self.limits = limits }

    /// Changes the accepted credentials, which stay in their places.
    mutating func changeAccepted(_ change: (inout AcceptedLogin) -> Void) {
        accepted.changeAll(change)
        nextEnd = .unknown
    }

    // MARK: Writing

    /// Stores an accepted credential. Returns whether it is new. A credential whose memory is not locked against
    /// swapping is not stored.
    /// - Parameter digest: the challenge that the credential was accepted for.
    /// - Parameters:
    ///   - isProven: see `AcceptedLogin.provenAt`.
    ///   - sentAt: when the accepted request was sent; `nil` for now.
    @discardableResult
    mutating func remember(
        _ credential: LoginCredential, for space: ProtectionSpace, owner: Partition? = nil,
        by provider: ConsentBook.Holder? = nil, path: ExactText, digest: DigestChallenge?, isProven: Bool = true,
        sentAt: Duration? = nil, now: Duration
    ) -> Bool {
        guard credential.secret.isLocked else { return false }  // guard: remember-locked-memory
        // The server may have found another path, in which the credential was accepted.
        let directory = HiddenSegments.leadUp(in: path) ? nil : URLComponentText.directory(of: path)
        let acceptance = Acceptance(
            directory: directory, digest: digest, provider: provider, provenAt: isProven ? sentAt ?? now : nil,
            time: now)
        let challenger = Challenger(space)
        let (limits, wallTime) = (limits, wallTime)
        // A token that was renewed while a fetch used it must not replace its successor.
        if credential.form == .token {
            let isFormer = accepted.change(at: challenger) { logins in
                let place = logins.positions(of: owner, in: space) { $0.former?.matches(credential) == true }.first
                if let place { logins[place].acceptFormer(acceptance, maxPaths: limits.paths) }
                return place != nil
            }
            if isFormer { return false }
        }
        let previous = accepted.change(at: challenger) { logins -> Previous? in
            let place = logins.positions(of: owner, in: space) {
                // guard: session-account-domain
                $0.credential.account == credential.account && $0.credential.isForSamePart(as: credential)
            }.first
            guard let place else { return nil }
            let known = logins[place]
            guard known.credential.isWhole(credential),
                limits.allow(known.credential, since: known.since, lastUse: known.lastUse, now: now, wallTime)
            else { return .other(at: place, known.rank) }
            logins[place].accept(acceptance, maxPaths: limits.paths)
            return .same
        }
        switch previous {
        case .same: break
        case .other(let place, let rank):
            accepted[challenger][place] = login(credential, for: space, owner, acceptance, rank)
        case nil:
            let rank = rank(of: credential, for: space, owner)
            accepted.append(login(credential, for: space, owner, acceptance, rank), at: challenger)
        }
        if !staged.isEmpty {
            staged.change(at: challenger) { logins in
                for place in logins.positions(in: [space.realm, nil]).reversed()
                where logins[place].pattern.matches(space) && logins[place].owner == owner
                    && logins[place].credential.isSame(as: credential)
                { _ = logins.remove(at: place) }
            }
        }
        // A reload may have lowered the limits.
        if previous == nil || count > limits.entries { evict(at: challenger, owner) }
        return previous != .same
    }

    /// An entry for the same account as an accepted credential.
    private enum Previous: Equatable {
        case same
        case other(at: Int, Rank)
    }

    /// Returns a new entry.
    private mutating func login(
        _ credential: LoginCredential, for space: ProtectionSpace, _ owner: Partition?, _ acceptance: Acceptance,
        _ rank: Rank?
    ) -> AcceptedLogin {
        lastNumber += 1
        nextEnd.include(credential, limits.end(since: acceptance.time, lastUse: acceptance.time))
        let entry = SessionEntry(
            number: lastNumber, space: space, owner: owner, credential: credential,
            directories: acceptance.directory.map { [$0] } ?? [], digest: acceptance.digest, since: acceptance.time,
            providers: acceptance.provider.map { [$0] } ?? [], rank: rank ?? Rank(place: lastNumber))
        return AcceptedLogin(entry, acceptance)
    }

    /// Makes room after an entry was added. Entries of single partitions are evicted before shared ones.
    private mutating func evict(at challenger: Challenger, _ owner: Partition?) {
        let share = AcceptedCredentials.share(of: limits.entries)
        if accepted[challenger].count > share {
            let list = accepted[challenger]
            if !accepted.dropOldest(of: list.filter { $0.owner != nil }) { accepted.dropOldest(of: list) }
        } else if let owner, accepted.count(of: owner) > SessionLimits.entriesOfPart {
            accepted.dropOldest(of: accepted.entriesOfFullest { $0.owner == owner })
        } else if count > limits.entries {
            if !accepted.dropOldest(of: accepted.entriesOfFullest { $0.owner != nil }) {
                accepted.dropOldest(of: accepted.entriesOfFullest { _ in true })
            }
        }
    }

    /// Stages a credential that no server has seen. Returns its number and whether it is new.
    mutating func give(
        _ credential: LoginCredential, for pattern: SpacePattern, owner: Partition? = nil, now: Duration
    ) -> (number: Int, isNews: Bool) {
        let challenger = Challenger(pattern)
        let logins = staged[challenger]
        let index = logins.positions(in: [pattern.realm]).first {
            logins[$0].pattern == pattern && logins[$0].owner == owner
                && logins[$0].credential.account == credential.account && logins[$0].credential.hasPath(of: credential)
        }
        let previous = index.map { logins[$0] }
        if let previous, previous.credential.isWhole(credential) { return (previous.number, false) }
        lastNumber += 1
        nextEnd.include(credential, limits.end(since: now, lastUse: now))
        let replaced = supersede(with: credential, for: pattern, owner: owner)
        let entry = StagedCredential(
            number: lastNumber, pattern: pattern, owner: owner, credential: credential, since: now,
            rank: previous?.rank ?? replaced ?? Rank(place: lastNumber))
        if let index {
            staged[challenger][index] = entry
        } else {
            staged.append(entry, at: challenger, limit: limits.entries)
        }
        return (lastNumber, true)
    }

    /// Removes the credentials of the same account in the spaces of `pattern`, because a newer one was stored
    /// (SEMANTICS rule 18). Returns the highest rank among the removed ones.
    @discardableResult
    mutating func supersede(
        with credential: LoginCredential, for pattern: SpacePattern, owner: Partition?
    ) -> Rank? {
        var rank: Rank?
        accepted[Challenger(pattern)].removeAll { entry in
            guard pattern.matches(entry.space), entry.owner == owner, entry.credential.form == credential.form,
                entry.credential.account == credential.account, entry.credential.hasPath(of: credential),
                !entry.credential.isWhole(credential)
            else { return false }
            if rank.map(entry.rank.precedes) ?? true { rank = entry.rank }
            return true
        }
        return rank
    }

    /// Returns the rank of the credential of the same account that is staged for this space.
    private func rank(
        of credential: LoginCredential, for space: ProtectionSpace, _ owner: Partition?
    ) -> Rank? {
        let own = staged[Challenger(space)].list(for: space).filter {
            $0.pattern.matches(space) && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.isForSamePart(as: credential)
        }
        return own.map(\.rank).min { $0.precedes($1) }
    }

    /// Whether exactly this credential was staged, so that its first use is not reported as new.
    func wasStaged(_ credential: LoginCredential, for space: ProtectionSpace) -> Bool {
        !staged.isEmpty
            && staged[Challenger(space)].list(for: space).contains { $0.credential.isSame(as: credential) }
    }

    /// Makes the entry the default of its space. Returns whether that changed anything; `nil` if no such entry
    /// exists.
    mutating func prefer(_ number: Int, now: Duration) -> Bool? {
        if let chosen = staged.all.first(where: { $0.number == number }) {
            guard !isDefault(chosen, now: now) else { return false }
            mark(number, beside: chosen.credential, chosen.owner) { $0.overlaps(chosen.pattern) }
            return true
        }
        guard let chosen = accepted.all.first(where: { $0.number == number }) else { return nil }
        guard !isDefault(chosen, now: now) else { return false }
        mark(number, beside: chosen.credential, chosen.owner) { $0.matches(chosen.space) }
        return true
    }

    /// Marks entry `number` as preferred, and no other of the same path in these spaces.
    private mutating func mark(
        _ number: Int, beside chosen: LoginCredential, _ owner: Partition?, where matches: (SpacePattern) -> Bool
    ) {
        staged.changeAll { entry in
            if entry.owner == owner, matches(entry.pattern), entry.credential.isForSamePart(as: chosen) {
                entry.rank.isPreferred = entry.number == number
            }
        }
        changeAccepted { login in
            if login.owner == owner, matches(SpacePattern(login.space)), login.credential.isForSamePart(as: chosen) {
                login.change { $0.rank.isPreferred = $0.number == number }
            }
        }
    }

    /// Records a nonce that the server announced after a body, if the cache still has the login with its previous
    /// nonce.
    mutating func follow(_ response: DigestResponse, with nonce: ExactText, _ attempt: Attempt) {
        let (challenger, space) = (Challenger(attempt.space), attempt.space)
        let place = accepted[challenger].positions(of: attempt.partition, in: space) {
            $0.credential.isSame(as: attempt.credential) && $0.digest?.nonce == response.challenge.nonce
        }.first
        guard let place else { return }
        let next = nonces.follow(response, with: nonce, at: attempt.challenger)
        accepted[challenger][place].change { $0.digest = next }
    }

    /// Records that the server has answered the credential, sent unasked, without a challenge.
    mutating func withhold(
        _ sent: LoginCredential, for space: ProtectionSpace, owner: Partition?, at path: ExactText
    ) {
        let maxPaths = limits.paths
        accepted.change(sent, for: space, owner: owner) {
            $0.withhold(at: URLComponentText.directory(of: path), maxPaths: maxPaths)
        }
    }

    /// Records a doubtful refusal of the credential. The doubt ends when the credential is accepted again.
    mutating func doubt(_ refused: LoginCredential, for space: ProtectionSpace, owner: Partition?) {
        accepted.change(refused, for: space, owner: owner) { $0.isDoubted = true }
    }

    // MARK: Forgetting

    /// Removes the refused credential; one with a newer value stays. Returns whether anything was removed.
    @discardableResult
    mutating func forget(
        _ refused: LoginCredential, for space: ProtectionSpace, owner: Partition? = nil, at challenger: Challenger
    ) -> Bool {
        let before = count + staged.count
        accepted[challenger].removeAll {
            $0.space == space && $0.owner == owner && $0.credential.isSame(as: refused)
                && $0.credential.hasPath(of: refused)
        }
        staged[challenger].removeAll {
            $0.pattern.matches(space) && $0.owner == owner && $0.credential.isSame(as: refused)
                && $0.credential.hasPath(of: refused)
        }
        return count + staged.count < before
    }

    /// Removes the matching credentials and returns their number.
    mutating func forget(where matches: (SessionListing) -> Bool) -> Int {
        let before = count + staged.count
        accepted.removeAll { matches(SessionListing($0)) }
        staged.removeAll { matches(SessionListing($0)) }
        return before - count - staged.count
    }

    /// Removes all credentials that match `address` and were stored at `since` or later; `nil` matches all. Returns
    /// their number.
    public mutating func clear(at address: SiteAddress? = nil, since: Duration? = nil) -> Int {
        forget { listing in
            if let since, listing.since < since { return false }
            return address?.contains(listing.space) ?? true  // guard: clearing-an-address
        }
    }

    /// Removes the entries whose lifetime or idle time is over.
    public mutating func expire(now: Duration) {
        guard nextEnd.hasCome(now, wallTime) else { return }
        // Without a reference to the entries, which would be copied.
        let (limits, wallTime) = (limits, wallTime)
        var next = NextEnd.never
        func isOver(_ credential: LoginCredential, since: Duration, lastUse: Duration) -> Bool {
            guard limits.allow(credential, since: since, lastUse: lastUse, now: now, wallTime) else { return true }
            next.include(credential, limits.end(since: since, lastUse: lastUse))
            return false
        }
        accepted.removeAll { isOver($0.credential, since: $0.since, lastUse: $0.lastUse) }
        staged.removeAll { isOver($0.credential, since: $0.since, lastUse: $0.since) }
        nextEnd = next
    }
}
