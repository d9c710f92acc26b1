internal import WatchwordProtocol

/// The credentials of the session, by protection space and user: accepted credentials, with the paths and Digest
/// nonces they were accepted for, and staged credentials that no server has seen.
///
/// All times are durations since one arbitrary start and never decrease. Bounded in total, per server and per
/// partition: the least recently used entry is evicted.
public struct SessionCache: Sendable {
    /// The accepted credentials, indexed by challenger because each fetch searches them before it sends anything. The
    /// first credential of a space is its default, until another is preferred.
    private var entries: [Challenger: [SessionEntry]] = [:]
    /// The credentials staged by `credential/store`, not tried yet.
    private var given: [StagedCredential] = []
    /// The nonce counts of all fetches, including those without storage: nonces are not credentials.
    var nonces = DigestNonces()
    /// The number of accepted credentials; staged ones are not included.
    public private(set) var count = 0
    /// Whether there are neither accepted nor staged credentials.
    var isEmpty: Bool { count == 0 && given.isEmpty }
    private var lastNumber = 0
    public var limits: SessionLimits
    /// The wall-clock time of the last event, since 1970, which decides whether a credential has expired.
    var wallTime = Duration.zero

    public init(limits: SessionLimits = SessionLimits()) { self.limits = limits }

    // MARK: Reading

    /// Returns the credential of `user` for exactly this space, or the default of the space if `user` is `nil`. Returns
    /// `nil` if that credential is doubted (`SessionEntry.isDoubted`), or if a staged credential takes precedence.
    /// - Parameter scope: the scope that a token needs; `nil` if unknown (SEMANTICS rule 29).
    func credential(
        for space: ProtectionSpace, user: Account? = nil, owner: Partition? = nil, at challenger: Challenger,
        path: ExactText = "/", scope: BearerScope? = nil, now: Duration
    ) -> LoginCredential? {
        var list = list(at: challenger, of: owner, path: path)
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
        where isMeant: (SpacePattern) -> Bool = { _ in true }
    ) -> LoginCredential? {
        let fitting = waiting(for: space, owner: owner, path: path, now: now).filter {
            isMeant($0.pattern) && (user?.admits($0.credential.account) ?? true)
        }
        return fitting.min { $0.precedes($1) }?.credential
    }

    /// Returns the staged credentials for `space`, unless the same account already has an accepted credential for the
    /// same path.
    private func waiting(
        for space: ProtectionSpace, owner: Partition?, path: ExactText, now: Duration
    ) -> [StagedCredential] {
        let fitting = given.filter {
            // guard: session-owner-of-given
            $0.pattern.matches(space) && $0.owner == owner && $0.credential.covers(path) && isValid($0, now)
        }
        guard !fitting.isEmpty else { return [] }
        let accepted = (entries[Challenger(space)] ?? []).filter {
            $0.space == space && $0.owner == owner && isValid($0, now)
        }
        return fitting.filter { one in
            !accepted.contains {
                $0.credential.account == one.credential.account && $0.credential.isForSamePart(as: one.credential)
            }
        }
    }

    /// Whether a staged credential takes precedence over `entry`, by a narrower path or as the default (SEMANTICS rule
    /// 18).
    private func isOutranked(_ entry: SessionEntry, for user: Account?, path: ExactText, now: Duration) -> Bool {
        guard !given.isEmpty else { return false }
        return waiting(for: entry.space, owner: entry.owner, path: path, now: now).contains { one in
            guard one.credential.form == entry.credential.form, user?.admits(one.credential.account) ?? true else {
                return false
            }
            let (own, others) = (entry.credential.pathLength, one.credential.pathLength)
            return own == others ? one.standing.precedes(entry.standing) : own < others
        }
    }

    /// Returns all credentials with the narrowest path for exactly this space, and their numbers: accepted ones, then
    /// staged ones whose pattern satisfies `isMeant`.
    func choices(
        for space: ProtectionSpace, user: Account?, owner: Partition?, at challenger: Challenger, path: ExactText,
        now: Duration, where isMeant: (SpacePattern) -> Bool
    ) -> [(number: Int, credential: LoginCredential)] {
        let accepted = list(at: challenger, of: owner, path: path).filter { $0.space == space && isValid($0, now) }
        let waiting = waiting(for: space, owner: owner, path: path, now: now).filter { isMeant($0.pattern) }
        let all = accepted.map { ($0.number, $0.credential) } + waiting.map { ($0.number, $0.credential) }
        let named = all.filter { user?.admits($0.1.account) ?? true }
        let narrowest = named.map(\.1.pathLength).max()
        return named.filter { $0.1.pathLength == narrowest }
    }

    /// Returns a password for any of these spaces, or a token if they are for Bearer. Prefers the space with the
    /// longest matching path, then the default of that space. A staged credential is used if none was accepted, or if
    /// its path is narrower.
    func credential(
        for pattern: SpacePattern, user: Account?, owner: Partition?, path: ExactText, now: Duration
    ) -> LoginCredential? {
        let challenger = Challenger(pattern)
        let list = list(at: challenger, of: owner, path: path)
        // An attacker on the network could send a Basic challenge and read a password that was accepted for Digest
        // (SEMANTICS rule 25).
        let isReadable =
            if case .server(let origin) = challenger { origin.scheme == .http && !origin.isLoopback } else { true }
        let form: LoginCredential.Form = pattern.authenticationMethod == .bearer ? .token : .password
        let fitting = list.filter { entry in
            entry.credential.form == form && isValid(entry, now)
                && (!isReadable || entry.space.authenticationMethod == .httpBasic)
                && pattern.contains(SpacePattern(entry.space))
                && isDefault(entry, for: user, among: list, path: path, now: now)
                && (user?.admits(entry.credential.account) ?? true)
        }
        let waiting = given.filter { entry in
            entry.credential.form == form && entry.owner == owner && entry.pattern.overlaps(pattern)
                && (user?.admits(entry.credential.account) ?? true) && entry.credential.covers(path)
                && isValid(entry, now)
        }
        let narrowest = waiting.map(\.credential.pathLength).max()
        let untried = waiting.filter { $0.credential.pathLength == narrowest }
            .min { $0.standing.precedes($1.standing) }?.credential
        let best = fitting.max { ($0.matchLength(of: path) ?? -1) < ($1.matchLength(of: path) ?? -1) }?.credential
        guard let best else { return untried }
        return untried.flatMap { $0.pathLength > best.pathLength ? $0 : nil } ?? best
    }

    /// Returns the entry whose credential may be sent before a challenge; the longest matching path wins. NTLM and
    /// Negotiate are excluded: they authenticate connections, and only after a challenge.
    func preemptiveEntry(
        at challenger: Challenger, path: ExactText, user: Account? = nil, owner: Partition? = nil, now: Duration
    ) -> SessionEntry? {
        let candidates = list(at: challenger, of: owner, path: path)
        var best: (entry: SessionEntry, length: Int)?
        // Set if several tokens match equally; only the server's challenge says which one is needed.
        var isAmbiguous = false
        for entry in candidates where isValid(entry, now) {
            // guard: attempt-doubted
            guard !entry.isHandshake, !entry.isDoubted, let length = entry.matchLength(of: path),
                length >= best?.length ?? -1
            else {
                continue
            }
            let scope = entry.credential.scope
            guard length > best?.length ?? -1 || scope != best?.entry.credential.scope else { continue }
            let isOnly = candidates.count == 1 && given.isEmpty
            let equals = isOnly ? [] : candidates.filter { $0.credential.scope == scope }
            guard isOnly || isDefault(entry, for: user, among: equals, path: path, now: now) else { continue }
            // guard: one-token-is-not-two
            isAmbiguous = best.map { length == $0.length && !entry.credential.isSame(as: $0.entry.credential) } ?? false
            best = (entry, length)
        }
        if isAmbiguous { return nil }  // guard: scope-preemptive
        return best.flatMap { user?.admits($0.entry.credential.account) ?? true ? $0.entry : nil }
    }

    private func list(at challenger: Challenger, of owner: Partition?) -> [SessionEntry] {
        guard let list = entries[challenger] else { return [] }
        return list.allSatisfy { $0.owner == owner } ? list : list.filter { $0.owner == owner }  // guard: session-owner
    }

    /// Returns the entries that are valid for `path`.
    private func list(at challenger: Challenger, of owner: Partition?, path: ExactText) -> [SessionEntry] {
        let list = list(at: challenger, of: owner)
        // guard: session-path
        return list.allSatisfy { $0.credential.path == nil } ? list : list.filter { $0.credential.covers(path) }
    }

    private func isValid(_ entry: SessionEntry, _ now: Duration) -> Bool {
        limits.allow(entry, now: now) && !entry.credential.isExpired(at: wallTime)  // guard: session-expiry
    }

    private func isValid(_ entry: StagedCredential, _ now: Duration) -> Bool {
        limits.allow(since: entry.since, lastUse: entry.since, now: now) && !entry.credential.isExpired(at: wallTime)
    }

    private func isDefault(
        _ entry: SessionEntry, for user: Account?, among list: [SessionEntry], path: ExactText, now: Duration
    ) -> Bool {
        defaultEntry(of: entry.space, user: user, in: list, now: now)?.number == entry.number
            && !isOutranked(entry, for: user, path: path, now: now)  // guard: default-counts-what-waits
    }

    private func defaultEntry(
        of space: ProtectionSpace, user: Account?, in list: [SessionEntry], now: Duration
    ) -> SessionEntry? {
        let fitting = list.lazy.filter {
            $0.space == space && (user?.admits($0.credential.account) ?? true) && isValid($0, now)
        }
        // A credential for a narrower path precedes one for the whole server (SEMANTICS rule 18).
        let narrowest = fitting.map(\.credential.pathLength).max()
        return fitting.filter { $0.credential.pathLength == narrowest }.min { $0.standing.precedes($1.standing) }
    }

    /// Returns the credential for exactly this space if its refusal is doubtful (see `SessionEntry.isDoubted`).
    func doubtedCredential(
        for space: ProtectionSpace, user: Account?, owner: Partition?, now: Duration
    ) -> LoginCredential? {
        let entry = defaultEntry(of: space, user: user, in: list(at: Challenger(space), of: owner), now: now)
        return entry.flatMap { $0.isDoubted ? $0.credential : nil }
    }

    /// Records a doubtful refusal of the credential. The doubt ends when the credential is accepted again.
    mutating func doubt(_ refused: LoginCredential, for space: ProtectionSpace, owner: Partition?) {
        let challenger = Challenger(space)
        for index in entries[challenger]?.indices ?? 0..<0 {
            guard let entry = entries[challenger]?[index], entry.space == space, entry.owner == owner,
                entry.credential.isSame(as: refused)
            else { continue }
            entries[challenger]?[index].isDoubted = true
        }
    }

    /// Returns when the server last accepted exactly this credential (see `SessionEntry.provenAt`); `nil` if unknown.
    func provenAt(_ credential: LoginCredential, for space: ProtectionSpace, owner: Partition?) -> Duration? {
        let entry = entries[Challenger(space)]?.first {
            $0.space == space && $0.owner == owner && $0.credential.isSame(as: credential)
        }
        return entry?.provenAt
    }

    /// Whether `holder` has provided exactly this credential to the shared partition.
    func wasProvided(_ credential: LoginCredential, for space: ProtectionSpace, by holder: GrantBook.Holder) -> Bool {
        (entries[Challenger(space)] ?? []).contains { entry in
            entry.space == space && entry.owner == nil && entry.credential.isSame(as: credential)
                && entry.providers.contains { $0.isSame(as: holder) }
        }
    }

    // MARK: Writing

    /// Stores an accepted credential. Returns whether it is new. A credential whose memory is not locked against
    /// swapping is not stored.
    /// - Parameter digest: the challenge that the credential was accepted for.
    /// - Parameter isProven: see `SessionEntry.provenAt`.
    @discardableResult
    mutating func remember(
        _ credential: LoginCredential, for space: ProtectionSpace, owner: Partition? = nil,
        by provider: GrantBook.Holder? = nil, path: ExactText, digest: DigestChallenge?, isProven: Bool = true,
        now: Duration
    ) -> Bool {
        guard credential.secret.isLocked else { return false }  // guard: remember-locked-memory
        let directory = URLComponentText.directory(of: path)
        let challenger = Challenger(space)
        // Removing the list during the change avoids a copy.
        var list = entries.removeValue(forKey: challenger) ?? []
        let index = list.firstIndex {
            // guard: session-account-domain
            $0.space == space && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.isForSamePart(as: credential)
        }
        var isNews = true
        if let index, list[index].credential.isWhole(credential), isValid(list[index], now) {
            list[index].record(directory, digest: digest, now: now, maxPaths: limits.paths)
            list[index].recordProvider(provider)
            if isProven { list[index].provenAt = now }
            list[index].isDoubted = false
            isNews = false
        } else {
            lastNumber += 1
            var entry = SessionEntry(
                number: lastNumber, space: space, owner: owner, credential: credential, directories: [directory],
                digest: digest, since: now, lastUse: now, provenAt: isProven ? now : nil,
                standing: index.map { list[$0].standing }
                    ?? standing(of: credential, owner) { $0.matches(space) } ?? Standing(place: lastNumber))
            entry.recordProvider(provider)
            if let index {
                list[index] = entry
            } else {
                list.append(entry)
                count += 1
            }
        }
        let countOfOrigin = list.count
        entries[challenger] = list
        given.removeAll {
            $0.pattern.matches(space) && $0.owner == owner && $0.credential.isSame(as: credential)
        }
        if countOfOrigin > OriginShare.entries(of: limits.entries) {  // guard: session-share-of-a-server
            // Entries of single partitions are evicted before shared ones.
            if !dropOldest(where: { $0.owner != nil && $0.challenger == challenger }) {
                dropOldest { $0.challenger == challenger }
            }
        } else if let owner, entryCount(of: owner) > SessionLimits.entriesOfPart {
            dropOldest { $0.owner == owner }
        } else if count > limits.entries {  // guard: session-entries
            if !dropOldest(where: { $0.owner != nil }) { dropOldest() }
        }
        return isNews
    }

    /// Stages a credential that no server has seen. Returns its number and whether it is new.
    mutating func give(
        _ credential: LoginCredential, for pattern: SpacePattern, owner: Partition? = nil, now: Duration
    ) -> (number: Int, isNews: Bool) {
        let index = given.firstIndex {
            $0.pattern == pattern && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.hasPath(of: credential)
        }
        if let index, given[index].credential.isWhole(credential) { return (given[index].number, false) }
        lastNumber += 1
        let replaced = supersede(with: credential, for: pattern, owner: owner)
        let entry = StagedCredential(
            number: lastNumber, pattern: pattern, owner: owner, credential: credential, since: now,
            standing: index.map { given[$0].standing } ?? replaced ?? Standing(place: lastNumber))
        if let index { given[index] = entry } else { given.append(entry) }
        // guard: session-given-entries
        let surplus = OriginShare.surplus(in: given, limit: limits.entries) { Challenger($0.pattern) }
        if let surplus { given.remove(at: surplus) }
        return (lastNumber, true)
    }

    /// Removes the credentials of the same account in the spaces of `pattern`, because a newer one was stored
    /// (SEMANTICS rule 18). Returns the highest standing among the removed ones.
    @discardableResult
    mutating func supersede(
        with credential: LoginCredential, for pattern: SpacePattern, owner: Partition?
    ) -> Standing? {
        var standing: Standing?
        removeEntries(at: Challenger(pattern)) { entry in
            guard pattern.matches(entry.space), entry.owner == owner, entry.credential.form == credential.form,
                entry.credential.account == credential.account, entry.credential.hasPath(of: credential),
                !entry.credential.isWhole(credential)
            else { return false }
            if standing.map(entry.standing.precedes) ?? true { standing = entry.standing }
            return true  // guard: stored-replaces-accepted
        }
        return standing
    }

    private func standing(
        of credential: LoginCredential, _ owner: Partition?, where isMeant: (SpacePattern) -> Bool
    ) -> Standing? {
        let own = given.filter {
            isMeant($0.pattern) && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.isForSamePart(as: credential)
        }
        return own.map(\.standing).min { $0.precedes($1) }
    }

    /// Whether exactly this credential was staged, so that its first use is not reported as new.
    func wasStaged(_ credential: LoginCredential, for space: ProtectionSpace) -> Bool {
        given.contains { $0.pattern.matches(space) && $0.credential.isSame(as: credential) }
    }

    /// Makes the entry the default of its space. Returns whether that changed anything; `nil` if no such entry
    /// exists.
    mutating func prefer(_ number: Int, now: Duration) -> Bool? {
        if let chosen = given.first(where: { $0.number == number }) {
            guard !isDefault(chosen, now: now) else { return false }
            mark(number, beside: chosen.credential, chosen.owner) { $0.overlaps(chosen.pattern) }
            return true
        }
        guard let chosen = entries.values.joined().first(where: { $0.number == number }) else { return nil }
        guard !isDefault(chosen, now: now) else { return false }
        mark(number, beside: chosen.credential, chosen.owner) { $0.matches(chosen.space) }
        return true
    }

    /// Marks entry `number` as preferred, and no other of the same path in these spaces.
    private mutating func mark(
        _ number: Int, beside chosen: LoginCredential, _ owner: Partition?, where isMeant: (SpacePattern) -> Bool
    ) {
        given = given.map { entry in
            var entry = entry
            if entry.owner == owner, isMeant(entry.pattern), entry.credential.isForSamePart(as: chosen) {
                entry.standing.isPreferred = entry.number == number
            }
            return entry
        }
        for (challenger, list) in entries {
            entries[challenger] = list.map { entry in
                var entry = entry
                if entry.owner == owner, isMeant(SpacePattern(entry.space)), entry.credential.isForSamePart(as: chosen)
                {
                    entry.standing.isPreferred = entry.number == number
                }
                return entry
            }
        }
    }

    /// Whether the entry is the default among those for the same path.
    private func isDefault(_ entry: SessionEntry, now: Duration) -> Bool {
        let equals = list(at: entry.challenger, of: entry.owner).filter {
            $0.credential.isForSamePart(as: entry.credential)
        }
        return isDefault(entry, for: nil, among: equals, path: entry.credential.path ?? "/", now: now)
    }

    private func isDefault(_ entry: StagedCredential, now: Duration) -> Bool {
        let equals = given.filter {
            $0.pattern == entry.pattern && $0.owner == entry.owner && $0.credential.isForSamePart(as: entry.credential)
                && isValid($0, now)
        }
        guard !equals.contains(where: { $0.standing.precedes(entry.standing) }) else { return false }
        return !list(at: Challenger(entry.pattern), of: entry.owner).contains {
            entry.pattern.matches($0.space) && isValid($0, now) && $0.credential.form == entry.credential.form
                && $0.credential.isForSamePart(as: entry.credential)
                && ($0.credential.account == entry.credential.account || $0.standing.precedes(entry.standing))
        }
    }

    /// Records a nonce that the server announced after a body, if the cache still has the login with its previous
    /// nonce.
    mutating func follow(_ response: DigestResponse, with nonce: ExactText, _ attempt: Attempt) {
        let challenger = attempt.challenger
        let index = entries[challenger]?.firstIndex {
            $0.space == attempt.space && $0.owner == attempt.partition && $0.credential.isSame(as: attempt.credential)
                && $0.digest?.nonce == response.challenge.nonce
        }
        guard let index else { return }
        // guard: nextnonce-of-open-body
        entries[challenger]?[index].digest = nonces.follow(response, with: nonce, at: challenger)
    }

    // MARK: Forgetting

    /// Removes the refused credential; one with a newer value stays. Returns whether anything was removed.
    @discardableResult
    mutating func forget(
        _ refused: LoginCredential, for space: ProtectionSpace, owner: Partition? = nil, at challenger: Challenger
    ) -> Bool {
        let before = count + given.count
        removeEntries(at: challenger) {
            $0.space == space && $0.owner == owner && $0.credential.isSame(as: refused)
                && $0.credential.hasPath(of: refused)
        }
        given.removeAll {
            $0.pattern.matches(space) && $0.owner == owner && $0.credential.isSame(as: refused)
                && $0.credential.hasPath(of: refused)
        }
        return count + given.count < before
    }

    /// Removes the matching credentials and returns their number.
    mutating func forget(where isMeant: (SessionListing) -> Bool) -> Int {
        let before = count + given.count
        for challenger in Array(entries.keys) { removeEntries(at: challenger) { isMeant(SessionListing($0)) } }
        given.removeAll { isMeant(SessionListing($0)) }
        return before - count - given.count
    }

    /// Removes all credentials that match `origin` and were stored at `since` or later; `nil` matches all. Returns
    /// their number.
    public mutating func clear(origin: Origin? = nil, since: Duration? = nil) -> Int {
        forget { listing in
            if let since, listing.since < since { return false }  // guard: clearing-since-a-time
            guard let origin else { return true }
            return listing.space.proxyType == nil && listing.space.scheme == origin.scheme.rawValue
                && listing.space.host == origin.host && listing.space.port == origin.port
        }
    }

    /// Removes the entries whose lifetime or idle time is over.
    public mutating func expire(now: Duration) {
        let before = self
        for challenger in Array(entries.keys) { removeEntries(at: challenger) { !before.isValid($0, now) } }
        given.removeAll { !before.isValid($0, now) }
    }

    /// Returns all entries without their secrets, oldest first.
    func listing(now: Duration) -> [SessionListing] {
        let accepted = entries.values.joined().filter { isValid($0, now) }.map { entry in
            var listing = SessionListing(entry)
            listing.isDefault = isDefault(entry, now: now)
            return listing
        }
        let waiting = given.filter { isValid($0, now) }
        let listed = waiting.map { entry in
            var listing = SessionListing(entry)
            listing.isDefault = isDefault(entry, now: now)
            return listing
        }
        return (accepted + listed).sorted { $0.number < $1.number }
    }

    private mutating func removeEntries(at challenger: Challenger, where isDropped: (SessionEntry) -> Bool) {
        guard let list = entries[challenger] else { return }
        let remaining = list.filter { !isDropped($0) }
        count -= list.count - remaining.count
        entries[challenger] = remaining.isEmpty ? nil : remaining
    }

    private func entryCount(of owner: Partition) -> Int {
        entries.values.reduce(0) { $0 + $1.count { $0.owner == owner } }
    }

    /// Removes the least recently used entry of a server with the most matching entries. Returns `false` if none
    /// matches.
    @discardableResult
    private mutating func dropOldest(where isMeant: (SessionEntry) -> Bool = { _ in true }) -> Bool {
        let most = entries.values.map { $0.count(where: isMeant) }.max() ?? 0
        let fullest = entries.values.filter { $0.count(where: isMeant) == most }
        let oldest = fullest.joined().filter(isMeant).min { $0.lastUse < $1.lastUse }
        guard let oldest else { return false }
        removeEntries(at: oldest.challenger) { $0.number == oldest.number }
        return true
    }
}
