internal import WatchwordProtocol

/// The credentials of the session, by protection space and user: accepted credentials, with the paths and Digest
/// nonces they were accepted for, and staged credentials that no server has seen.
///
/// All times are durations since one arbitrary start and never decrease. Bounded in total, per server and per
/// partition: the least recently used entry is evicted.
public struct SessionCache: Sendable {
    private(set) var accepted = AcceptedCredentials()
    /// The credentials staged by `credential/store`, not tried yet.
    private(set) var staged = ChallengerTable<StagedCredential>()
    /// The nonce counts of all fetches, including those without storage: nonces are not credentials.
    var nonces = DigestNonces()
    /// The number of accepted credentials; staged ones are not included.
    public var count: Int { accepted.count }
    /// Whether there are neither accepted nor staged credentials.
    var isEmpty: Bool { count == 0 && staged.isEmpty }
    private var lastNumber = 0
    public var limits: SessionLimits
    /// The wall-clock time of the last event, since 1970, which decides whether a credential has expired.
    var wallTime = Duration.zero

    public init(limits: SessionLimits = SessionLimits()) { self.limits = limits }

    /// Changes the accepted credentials, which stay in their places.
    mutating func changeAccepted(_ change: (inout SessionEntry) -> Void) {
        accepted.changeAll { $0 = $0.changed(change) }
    }

    // MARK: Writing

    /// Stores an accepted credential. Returns whether it is new. A credential whose memory is not locked against
    /// swapping is not stored.
    /// - Parameter digest: the challenge that the credential was accepted for.
    /// - Parameters:
    ///   - isProven: see `SessionEntry.provenAt`.
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
        let challenger = Challenger(space)
        // A token that was renewed while a fetch used it must not replace its successor.
        if credential.form == .token,
            var renewed = accepted[challenger].first(where: { entry in
                entry.space == space && entry.owner == owner && entry.former?.matches(credential) == true
            })?.value
        {
            renewed.record(directory, digest: digest, now: now, maxPaths: limits.paths)
            accepted.put(renewed, replacing: renewed.number)
            return false
        }
        let place = accepted[challenger].firstIndex {
            // guard: session-account-domain
            $0.space == space && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.isForSamePart(as: credential)
        }
        let previous = place.map { accepted[challenger][$0] }
        var entry: SessionEntry
        let isNews: Bool
        if let previous, previous.credential.isWhole(credential), isValid(previous, now) {
            (entry, isNews) = (previous.value, false)
            entry.record(directory, digest: digest, now: now, maxPaths: limits.paths)
            entry.isDoubted = false
        } else {
            lastNumber += 1
            isNews = true
            entry = SessionEntry(
                number: lastNumber, space: space, owner: owner, credential: credential,
                directories: directory.map { [$0] } ?? [],
                digest: digest, since: now, lastUse: now,
                rank: previous?.rank
                    ?? rank(of: credential, for: space, owner) ?? Rank(place: lastNumber))
        }
        entry.recordProvider(provider)
        if isProven { entry.provenAt = sentAt ?? now }
        if let place {
            accepted[challenger][place] = Boxed(entry)
        } else {
            accepted.append(Boxed(entry), at: challenger)
        }
        if !staged.isEmpty {
            staged[challenger].removeAll {
                $0.pattern.matches(space) && $0.owner == owner && $0.credential.isSame(as: credential)
            }
        }
        // A reload may have lowered the limits.
        if place == nil || count > limits.entries { evict(at: challenger, owner) }
        return isNews
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
        let index = staged[challenger].firstIndex {
            $0.pattern == pattern && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.hasPath(of: credential)
        }
        let previous = index.map { staged[challenger][$0] }
        if let previous, previous.credential.isWhole(credential) { return (previous.number, false) }
        lastNumber += 1
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
        let own = staged[Challenger(space)].filter {
            $0.pattern.matches(space) && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.isForSamePart(as: credential)
        }
        return own.map(\.rank).min { $0.precedes($1) }
    }

    /// Whether exactly this credential was staged, so that its first use is not reported as new.
    func wasStaged(_ credential: LoginCredential, for space: ProtectionSpace) -> Bool {
        !staged.isEmpty
            && staged[Challenger(space)].contains { $0.pattern.matches(space) && $0.credential.isSame(as: credential) }
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
        changeAccepted { entry in
            if entry.owner == owner, matches(SpacePattern(entry.space)), entry.credential.isForSamePart(as: chosen) {
                entry.rank.isPreferred = entry.number == number
            }
        }
    }

    /// Records a nonce that the server announced after a body, if the cache still has the login with its previous
    /// nonce.
    mutating func follow(_ response: DigestResponse, with nonce: ExactText, _ attempt: Attempt) {
        var entry = accepted.entries(with: attempt.credential, for: attempt.space, owner: attempt.partition)
            .first { $0.digest?.nonce == response.challenge.nonce }
        entry?.digest = nonces.follow(response, with: nonce, at: attempt.challenger)
        if let entry { accepted.put(entry, replacing: entry.number) }
    }

    /// Records that the server has answered the credential, sent unasked, without a challenge.
    mutating func withhold(
        _ sent: LoginCredential, for space: ProtectionSpace, owner: Partition?, at path: ExactText
    ) {
        for var entry in accepted.entries(with: sent, for: space, owner: owner) {
            entry.withhold(at: URLComponentText.directory(of: path), maxPaths: limits.paths)
            accepted.put(entry, replacing: entry.number)
        }
    }

    /// Records a doubtful refusal of the credential. The doubt ends when the credential is accepted again.
    mutating func doubt(_ refused: LoginCredential, for space: ProtectionSpace, owner: Partition?) {
        for var entry in accepted.entries(with: refused, for: space, owner: owner) {
            entry.isDoubted = true
            accepted.put(entry, replacing: entry.number)
        }
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
        accepted.removeAll { matches(SessionListing($0.value)) }
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
        // Without a reference to the entries, which would be copied.
        let (limits, wallTime) = (limits, wallTime)
        accepted.removeAll { !limits.allow($0.credential, since: $0.since, lastUse: $0.lastUse, now: now, wallTime) }
        staged.removeAll { !limits.allow($0.credential, since: $0.since, lastUse: $0.since, now: now, wallTime) }
    }
}
