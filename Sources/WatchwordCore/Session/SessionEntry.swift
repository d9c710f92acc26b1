internal import WatchwordProtocol

/// An accepted credential, and what the server was seen to do with it.
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
}

/// What is known when a server has accepted a credential.
struct Acceptance: Sendable {
    /// Where the server has accepted it; `nil` if that is uncertain.
    let directory: ExactText?
    /// The challenge that it was accepted for.
    let digest: DigestChallenge?
    let provider: ConsentBook.Holder?
    /// See `AcceptedLogin.provenAt`; `nil` if the server may not have checked it.
    let provenAt: Duration?
    let time: Duration
}

/// An entry with its times: usually nothing else changes when the credential is accepted again.
@dynamicMemberLookup
struct AcceptedLogin: Sendable {
    private(set) var entry: Boxed<SessionEntry>
    private(set) var lastUse: Duration
    /// When the last request was sent whose credential the server has checked and accepted. A response on an
    /// authenticated connection proves nothing.
    private(set) var provenAt: Duration?

    init(_ entry: SessionEntry, _ acceptance: Acceptance) {
        (self.entry, lastUse, provenAt) = (Boxed(entry), acceptance.time, acceptance.provenAt)
    }

    var value: SessionEntry { _read { yield entry.value } }

    subscript<Part>(dynamicMember part: KeyPath<SessionEntry, Part>) -> Part { entry.value[keyPath: part] }

    mutating func change(_ change: (inout SessionEntry) -> Void) { entry = entry.changed(change) }

    mutating func accept(_ acceptance: Acceptance, maxPaths: Int) {
        lastUse = acceptance.time
        provenAt = acceptance.provenAt ?? provenAt
        if !entry.value.includes(acceptance) { change { $0.record(acceptance, maxPaths: maxPaths) } }
    }

    /// Records that the token was accepted which this one has replaced.
    mutating func acceptFormer(_ acceptance: Acceptance, maxPaths: Int) {
        lastUse = acceptance.time
        change { $0.record(acceptance.directory, acceptance.digest, maxPaths: maxPaths) }
    }
}

extension AcceptedLogin: IndexedLogin {
    var realm: ExactText? { value.space.realm }

    var paths: [ExactText] {
        var paths = value.directories + value.withheld
        if let path = value.credential.path { paths.append(path) }
        if value.space.authenticationMethod == .httpDigest { paths += value.domain?.paths ?? ["/"] }
        return paths
    }

    func isFound(like other: AcceptedLogin) -> Bool {
        entry === other.entry || realm == other.realm && paths == other.paths
    }
}

extension SessionEntry {
    /// Whether the acceptance changes nothing.
    fileprivate func includes(_ acceptance: Acceptance) -> Bool {
        digest == acceptance.digest && !isDoubted
            && acceptance.directory.map { covers($0) && !isWithheld(at: $0) } ?? true
            && acceptance.provider.map { holder in providers.contains { $0.isSame(as: holder) } } ?? true
    }

    fileprivate mutating func record(_ acceptance: Acceptance, maxPaths: Int) {
        record(acceptance.directory, acceptance.digest, maxPaths: maxPaths)
        isDoubted = false
        if let provider = acceptance.provider, !providers.contains(where: { $0.isSame(as: provider) }) {
            providers = providers.suffix(SessionLimits.providers - 1) + [provider]
        }
    }

    fileprivate mutating func record(_ directory: ExactText?, _ newer: DigestChallenge?, maxPaths: Int) {
        digest = newer
        guard let directory else { return }
        withheld.removeAll { PathRange.path($0, covers: directory) }
        guard !covers(directory) else { return }
        directories.removeAll { PathRange.path(directory, covers: $0) }
        if directories.count >= maxPaths { directories.removeFirst() }
        directories.append(directory)
    }

    private func covers(_ directory: ExactText) -> Bool {
        directories.contains { PathRange.path($0, covers: directory) }
    }

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

extension SessionEntry {
    /// The part of the server that a Digest challenge names; `nil` for the whole server. It has no meaning for a proxy (RFC
    /// 7616 section 3.3).
    fileprivate var domain: DigestDomain? { space.proxyType == nil ? digest?.domain : nil }

    /// Returns how many bytes of `path` the entry matches; `nil` if it is not valid there.
    /// - Parameter isPossible: whether a match counts that a server might find, but that is not certain.
    func matchLength(of path: ExactText, isPossible: Bool = false) -> Int? {
        var match: Int?
        for directory in directories {
            let isCovered =
                isPossible ? PathRange.path(directory, mayCover: path) : PathRange.path(directory, covers: path)
            if isCovered { match = max(match ?? 0, PathRange.length(of: directory)) }  // guard: session-path-scope
        }
        if let length = match, length > 1, !isPossible, HiddenSegments.leadUp(in: path) { match = nil }
        guard space.authenticationMethod == .httpDigest else { return match }
        guard let domain, case .server(let origin) = challenger else { return match ?? 0 }
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

extension StagedCredential: IndexedLogin {
    var realm: ExactText? { pattern.realm }

    var paths: [ExactText] { credential.path.map { [$0] } ?? [] }

    func isFound(like other: StagedCredential) -> Bool { realm == other.realm && paths == other.paths }
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

    init(_ entry: AcceptedLogin, isDefault: Bool = false) {
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
