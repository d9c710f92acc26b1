internal import WatchwordProtocol

/// One accepted credential in the session cache.
struct SessionEntry: Sendable {
    /// Identifies the entry while the broker runs.
    let number: Int
    @Indirect private(set) var space: ProtectionSpace
    /// The partition; `nil` for the shared one.
    let owner: Partition?
    var credential: LoginCredential
    /// The token before the last renewal. Fetches may still use it.
    var former: TokenDigest?
    /// The directories in or below which the credential was accepted. For Basic they are the whole scope (RFC 7617
    /// section 2.2). Digest is valid for its `domain`, or else for the whole server (RFC 7616 section 3.3); for Digest
    /// the directories only decide which space fits better.
    var directories: [ExactText]
    /// The challenge for which the credential was last accepted.
    var digest: DigestChallenge?
    let since: Duration
    var lastUse: Duration
    /// When the last request was sent whose credential the server has checked and accepted. A response on an
    /// authenticated connection proves nothing.
    var provenAt: Duration?
    /// Set after a refusal that may not concern this credential: a 407 through a forwarding proxy can come from the
    /// server. The credential is then sent only after a challenge, and by one fetch at a time.
    var isDoubted = false
    /// The directories in and below which the login is sent only after a challenge, because the server has answered it
    /// there without one. An acceptance there ends this.
    private(set) var withheld: [ExactText] = []
    /// The programs that provided this credential and need no consent for it.
    var providers: [ConsentBook.Holder] = []
    var rank: Rank

    var challenger: Challenger { Challenger(space) }

    var isHandshake: Bool { space.authenticationMethod == .ntlm || space.authenticationMethod == .negotiate }

    mutating func recordProvider(_ holder: ConsentBook.Holder?) {
        guard let holder, !providers.contains(where: { $0.isSame(as: holder) }) else { return }
        providers = providers.suffix(SessionLimits.providers - 1) + [holder]
    }

    mutating func record(_ directory: ExactText?, digest newer: DigestChallenge?, now: Duration, maxPaths: Int) {
        lastUse = now
        digest = newer
        if let directory { withheld.removeAll { PathRange.path($0, covers: directory) } }
        guard let directory, !directories.contains(where: { PathRange.path($0, covers: directory) }) else { return }
        directories.removeAll { PathRange.path(directory, covers: $0) }
        if directories.count >= maxPaths { directories.removeFirst() }
        directories.append(directory)
    }
}

extension SessionEntry {
    /// - Parameter maxPaths: if there were more directories, the whole server takes their place.
    mutating func withhold(at directory: ExactText, maxPaths: Int) {
        guard !isWithheld(at: directory) else { return }
        withheld.removeAll { PathRange.path(directory, covers: $0) }
        withheld = withheld.count < maxPaths ? withheld + [directory] : ["/"]
    }

    func isWithheld(at path: ExactText) -> Bool {
        withheld.contains { PathRange.path($0, covers: path) }
    }

    /// Replaces a token by its successor.
    mutating func replace(_ token: TokenDigest, with next: LoginCredential) {
        (credential, former, withheld) = (next, token, [])
    }
}

extension Boxed<SessionEntry> {
    /// Returns how many bytes of `path` the entry matches; `nil` if it is not valid there.
    /// - Parameter isPossible: whether a match counts that a server might find, but that is not certain.
    func matchLength(of path: ExactText, isPossible: Bool = false) -> Int? {
        var match: Int?
        for directory in value.directories {
            let isCovered =
                isPossible ? PathRange.path(directory, mayCover: path) : PathRange.path(directory, covers: path)
            if isCovered { match = max(match ?? 0, PathRange.length(of: directory)) }  // guard: session-path-scope
        }
        if let length = match, length > 1, !isPossible, HiddenSegments.leadUp(in: path) { match = nil }
        guard value.space.authenticationMethod == .httpDigest else { return match }
        // `domain` has no meaning for a proxy (RFC 7616 section 3.3).
        guard let domain = value.digest?.domain, case .server(let origin) = value.challenger else { return match ?? 0 }
        return domain.matchLength(of: path, at: origin, isPossible: isPossible).map { max($0, match ?? 0) }
    }
}

/// A credential that was stored before any server challenged for it.
struct StagedCredential: Sendable {
    let number: Int
    let pattern: SpacePattern
    /// The partition; `nil` for the shared one.
    let owner: Partition?
    let credential: LoginCredential
    let since: Duration
    var rank: Rank

    /// Whether this credential ranks before `other`: by the narrower path, then as the chosen default, then by the more
    /// exact pattern, then by its position (`Rank.place`).
    func precedes(_ other: StagedCredential) -> Bool {
        let (own, others) = (credential.pathLength, other.credential.pathLength)
        if own != others { return own > others }
        if rank.isPreferred != other.rank.isPreferred { return rank.isPreferred }
        if pattern.exactness != other.pattern.exactness { return pattern.exactness > other.pattern.exactness }
        return rank.precedes(other.rank)
    }
}

/// An entry of the session cache as it is listed, without the secret.
struct SessionListing: Sendable, Equatable {
    let number: Int
    let isToken: Bool
    let space: SpacePattern
    let user: ExactText?
    let domain: ExactText?
    let path: ExactText?
    let expiresAt: Duration?
    let owner: Partition?
    let isDefault: Bool
    let since: Duration
    /// `nil` for a credential that was not used yet.
    let lastUse: Duration?

    init(_ entry: SessionEntry, isDefault: Bool = false) {
        number = entry.number
        isToken = entry.credential.form == .token
        space = SpacePattern(entry.space)
        user = entry.credential.shownUser
        domain = entry.credential.account.domain
        path = entry.credential.path
        expiresAt = entry.credential.expiresAt
        owner = entry.owner
        self.isDefault = isDefault
        since = entry.since
        lastUse = entry.lastUse
    }

    init(_ given: StagedCredential, isDefault: Bool = false) {
        number = given.number
        isToken = given.credential.form == .token
        space = given.pattern
        user = given.credential.shownUser
        domain = given.credential.account.domain
        path = given.credential.path
        expiresAt = given.credential.expiresAt
        owner = given.owner
        self.isDefault = isDefault
        since = given.since
        lastUse = nil
    }
}

extension SpacePattern {
    /// A measure of how many parts of a space the pattern names.
    var exactness: Int { (realm == nil ? 0 : 2) + (authenticationMethod == nil ? 0 : 1) }
}
