internal import WatchwordProtocol

/// What the broker remembers for the session: credentials that servers have accepted, by protection space and user, with the
/// paths where they were, and the nonces that go with them; and credentials that were handed over for later.
///
/// Times are durations since any one start; they never go back. Bounded: the entry unused for longest makes room.
public struct SessionCache: Sendable {
    /// By who challenges, because each fetch looks there before it sends anything. The first of a space is its default, until
    /// another one is preferred.
    private var entries: [Challenger: [SessionEntry]] = [:]
    /// Handed over by `credential/store`, not tried yet.
    private var given: [GivenCredential] = []
    /// Not credentials: counted for every fetch, whatever it lets the broker keep.
    var nonces = DigestNonces()
    /// How many servers' credentials are remembered; those handed over for later are not among them.
    public private(set) var count = 0
    /// Neither of them.
    var isEmpty: Bool { count == 0 && given.isEmpty }
    private var lastNumber = 0
    public var limits: SessionLimits
    /// The wall-clock time since 1970 as of the last event: what expires goes by it.
    var wallTime = Duration.zero

    public init(limits: SessionLimits = SessionLimits()) { self.limits = limits }

    // MARK: Reading

    /// The credential for exactly this space, of this account, or of the space's default one.
    /// - Parameter scope: what a token has to be good for, as far as that is known (semantics rule 29).
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

    /// One that was handed over for this space, and that no server has seen yet.
    func givenCredential(
        for space: ProtectionSpace, user: Account?, owner: Partition? = nil, path: ExactText = "/", now: Duration,
        where isMeant: (SpacePattern) -> Bool = { _ in true }
    ) -> LoginCredential? {
        let fitting = waiting(for: space, owner: owner, path: path, now: now).filter {
            isMeant($0.pattern) && (user?.admits($0.credential.account) ?? true)
        }
        return fitting.min { $0.precedes($1) }?.credential
    }

    /// Those that were handed over for `space`; not one of an account whose newer password the server has accepted there.
    private func waiting(
        for space: ProtectionSpace, owner: Partition?, path: ExactText, now: Duration
    ) -> [GivenCredential] {
        let fitting = given.filter {
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

    /// Whether one that no server has seen yet goes before `entry`: the default, or one for a narrower path (semantics rule
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

    /// All that are for exactly this space, the narrowest path alone, with their numbers: what was accepted, then what no
    /// server has seen, of the patterns that are meant.
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

    /// A password for any of these spaces, or a token for those of Bearer: the space whose paths fit best first, then the default of its space; one that was
    /// handed over, and that no server has seen yet, last.
    func credential(
        for pattern: SpacePattern, user: Account?, owner: Partition?, path: ExactText, now: Duration
    ) -> LoginCredential? {
        let challenger = Challenger(pattern)
        let list = list(at: challenger, of: owner, path: path)
        // Whoever is on the way would have the password of a Digest from a program that is asked for Basic (semantics rule 25).
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

    /// The space whose credential may be sent before any challenge; the longest matching path wins. NTLM and Negotiate log in
    /// connections, which is never done unasked.
    func preemptiveEntry(
        at challenger: Challenger, path: ExactText, user: Account? = nil, owner: Partition? = nil, now: Duration
    ) -> SessionEntry? {
        let candidates = list(at: challenger, of: owner, path: path)
        var best: (entry: SessionEntry, length: Int)?
        // Which of several tokens is meant the server says in its challenge.
        var isAmbiguous = false
        for entry in candidates where isValid(entry, now) {
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
            isAmbiguous = best.map { length == $0.length && !entry.credential.isSame(as: $0.entry.credential) } ?? false
            best = (entry, length)
        }
        if isAmbiguous { return nil }
        return best.flatMap { user?.admits($0.entry.credential.account) ?? true ? $0.entry : nil }
    }

    private func list(at challenger: Challenger, of owner: Partition?) -> [SessionEntry] {
        guard let list = entries[challenger] else { return [] }
        return list.allSatisfy { $0.owner == owner } ? list : list.filter { $0.owner == owner }
    }

    /// Those that are good for `path`.
    private func list(at challenger: Challenger, of owner: Partition?, path: ExactText) -> [SessionEntry] {
        let list = list(at: challenger, of: owner)
        return list.allSatisfy { $0.credential.path == nil } ? list : list.filter { $0.credential.covers(path) }
    }

    private func isValid(_ entry: SessionEntry, _ now: Duration) -> Bool {
        limits.allow(entry, now: now) && !entry.credential.isExpired(at: wallTime)
    }

    private func isValid(_ entry: GivenCredential, _ now: Duration) -> Bool {
        limits.allow(since: entry.since, lastUse: entry.since, now: now) && !entry.credential.isExpired(at: wallTime)
    }

    private func isDefault(
        _ entry: SessionEntry, for user: Account?, among list: [SessionEntry], path: ExactText, now: Duration
    ) -> Bool {
        defaultEntry(of: entry.space, user: user, in: list, now: now)?.number == entry.number
            && !isOutranked(entry, for: user, path: path, now: now)
    }

    private func defaultEntry(
        of space: ProtectionSpace, user: Account?, in list: [SessionEntry], now: Duration
    ) -> SessionEntry? {
        let fitting = list.lazy.filter {
            $0.space == space && (user?.admits($0.credential.account) ?? true) && isValid($0, now)
        }
        // One for a narrower path goes before one for the whole server (semantics rule 18).
        let narrowest = fitting.map(\.credential.pathLength).max()
        return fitting.filter { $0.credential.pathLength == narrowest }.min { $0.standing.precedes($1.standing) }
    }

    /// The credential for exactly this space that somebody has refused who may have been somebody else.
    func doubtedCredential(
        for space: ProtectionSpace, user: Account?, owner: Partition?, now: Duration
    ) -> LoginCredential? {
        let entry = defaultEntry(of: space, user: user, in: list(at: Challenger(space), of: owner), now: now)
        return entry.flatMap { $0.isDoubted ? $0.credential : nil }
    }

    /// Notes such a refusal, until the credential is accepted again.
    mutating func doubt(_ refused: LoginCredential, for space: ProtectionSpace, owner: Partition?) {
        let challenger = Challenger(space)
        for index in entries[challenger]?.indices ?? 0..<0 {
            guard let entry = entries[challenger]?[index], entry.space == space, entry.owner == owner,
                entry.credential.isSame(as: refused)
            else { continue }
            entries[challenger]?[index].isDoubted = true
        }
    }

    /// When the server last accepted this very credential (see `SessionEntry.provenAt`); `nil` when that is not known.
    func provenAt(_ credential: LoginCredential, for space: ProtectionSpace, owner: Partition?) -> Duration? {
        let entry = entries[Challenger(space)]?.first {
            $0.space == space && $0.owner == owner && $0.credential.isSame(as: credential)
        }
        return entry?.provenAt
    }

    /// Whether `holder` has brought this very credential of the part of all.
    func wasBrought(_ credential: LoginCredential, for space: ProtectionSpace, by holder: GrantBook.Holder) -> Bool {
        (entries[Challenger(space)] ?? []).contains { entry in
            entry.space == space && entry.owner == nil && entry.credential.isSame(as: credential)
                && entry.bringers.contains { $0.isSame(as: holder) }
        }
    }

    // MARK: Writing

    /// Notes an accepted credential. `digest` is the challenge that it was accepted for. Returns whether that is news. What the
    /// kernel does not keep from swap is not remembered.
    /// - Parameter isProven: see `SessionEntry.provenAt`.
    @discardableResult
    mutating func remember(
        _ credential: LoginCredential, for space: ProtectionSpace, owner: Partition? = nil,
        by bringer: GrantBook.Holder? = nil, path: ExactText, digest: DigestChallenge?, isProven: Bool = true,
        now: Duration
    ) -> Bool {
        guard credential.secret.isLocked else { return false }
        let directory = URLComponentText.directory(of: path)
        let challenger = Challenger(space)
        // Taken out, so that it is not copied.
        var list = entries.removeValue(forKey: challenger) ?? []
        let index = list.firstIndex {
            $0.space == space && $0.owner == owner && $0.credential.account == credential.account
                && $0.credential.isForSamePart(as: credential)
        }
        var isNews = true
        if let index, list[index].credential.isWhole(credential), isValid(list[index], now) {
            list[index].note(directory, digest: digest, now: now, maxPaths: limits.paths)
            list[index].noteBringer(bringer)
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
            entry.noteBringer(bringer)
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
        if countOfOrigin > OriginShare.entries(of: limits.entries) {
            // What programs have for themselves goes before what all have.
            if !dropOldest(where: { $0.owner != nil && $0.challenger == challenger }) {
                dropOldest { $0.challenger == challenger }
            }
        } else if let owner, entryCount(of: owner) > SessionLimits.entriesOfPart {
            dropOldest { $0.owner == owner }
        } else if count > limits.entries {
            if !dropOldest(where: { $0.owner != nil }) { dropOldest() }
        }
        return isNews
    }

    /// Keeps a credential that no server has seen. Returns its number, and whether that is news.
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
        let entry = GivenCredential(
            number: lastNumber, pattern: pattern, owner: owner, credential: credential, since: now,
            standing: index.map { given[$0].standing } ?? replaced ?? Standing(place: lastNumber))
        if let index { given[index] = entry } else { given.append(entry) }
        let surplus = OriginShare.surplus(in: given, limit: limits.entries) { Challenger($0.pattern) }
        if let surplus { given.remove(at: surplus) }
        return (lastNumber, true)
    }

    /// Forgets the passwords that the accounts of `credential` had in the spaces of `pattern`: a newer one was stored (semantics
    /// rule 18). Returns how the first of them stood.
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
            return true
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

    /// Whether this very credential was handed over, so that using it for the first time is no news.
    func wasGiven(_ credential: LoginCredential, for space: ProtectionSpace) -> Bool {
        given.contains { $0.pattern.matches(space) && $0.credential.isSame(as: credential) }
    }

    /// Makes the entry the default of its space. `nil` when there is no such entry, else whether that changed anything.
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

    /// Among the credentials of the spaces that are meant, and of the same path, only this one is preferred.
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

    /// Among those for the same path.
    private func isDefault(_ entry: SessionEntry, now: Duration) -> Bool {
        let equals = list(at: entry.challenger, of: entry.owner).filter {
            $0.credential.isForSamePart(as: entry.credential)
        }
        return isDefault(entry, for: nil, among: equals, path: entry.credential.path ?? "/", now: now)
    }

    private func isDefault(_ entry: GivenCredential, now: Duration) -> Bool {
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

    /// Takes over a nonce that was announced at the end of a body, where the session still has the login and its nonce.
    mutating func follow(_ response: DigestResponse, with nonce: ExactText, _ attempt: Attempt) {
        let challenger = attempt.challenger
        let index = entries[challenger]?.firstIndex {
            $0.space == attempt.space && $0.owner == attempt.home && $0.credential.isSame(as: attempt.credential)
                && $0.digest?.nonce == response.challenge.nonce
        }
        guard let index else { return }
        entries[challenger]?[index].digest = nonces.follow(response, with: nonce, at: challenger)
    }

    // MARK: Forgetting

    /// Forgets the credential, if it is still the one that was refused: a newer one survives. Returns whether it was there.
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

    /// Forgets what `isMeant` says, and returns how many that were.
    mutating func forget(where isMeant: (SessionListing) -> Bool) -> Int {
        let before = count + given.count
        for challenger in Array(entries.keys) { removeEntries(at: challenger) { isMeant(SessionListing($0)) } }
        given.removeAll { isMeant(SessionListing($0)) }
        return before - count - given.count
    }

    /// Forgets everything, or all of one origin, or what came at `since` or later. Returns how many credentials were forgotten.
    public mutating func clear(origin: Origin? = nil, since: Duration? = nil) -> Int {
        forget { listing in
            if let since, listing.since < since { return false }
            guard let origin else { return true }
            return listing.space.proxyType == nil && listing.space.scheme == origin.scheme.rawValue
                && listing.space.host == origin.host && listing.space.port == origin.port
        }
    }

    /// Drops what is too old or was not used for too long.
    public mutating func expire(now: Duration) {
        let before = self
        for challenger in Array(entries.keys) { removeEntries(at: challenger) { !before.isValid($0, now) } }
        given.removeAll { !before.isValid($0, now) }
    }

    /// Everything that is remembered, without its secrets; in the order in which it came.
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
        let kept = list.filter { !isDropped($0) }
        count -= list.count - kept.count
        entries[challenger] = kept.isEmpty ? nil : kept
    }

    private func entryCount(of owner: Partition) -> Int {
        entries.values.reduce(0) { $0 + $1.count { $0.owner == owner } }
    }

    /// Returns whether there was one.
    @discardableResult
    private mutating func dropOldest(where isMeant: (SessionEntry) -> Bool = { _ in true }) -> Bool {
        // Of a server that has most; among those the one unused for longest.
        let most = entries.values.map { $0.count(where: isMeant) }.max() ?? 0
        let fullest = entries.values.filter { $0.count(where: isMeant) == most }
        let oldest = fullest.joined().filter(isMeant).min { $0.lastUse < $1.lastUse }
        guard let oldest else { return false }
        removeEntries(at: oldest.challenger) { $0.number == oldest.number }
        return true
    }
}
