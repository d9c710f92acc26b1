internal import WatchwordProtocol

/// One accepted credential in the session cache.
struct SessionEntry: Sendable {
    /// Names the entry for as long as the broker runs.
    let number: Int
    let space: ProtectionSpace
    /// In whose part it is; `nil` for that of all.
    let owner: Partition?
    let credential: LoginCredential
    /// Directories at or below which the credential was accepted. For Basic they are its whole scope (RFC 7617 section
    /// 2.2); Digest is good for the places that its challenge names, else for the whole server (RFC 7616 section 3.3), and
    /// they only say which space fits better.
    var directories: [ExactText]
    /// The challenge that the credential was last accepted for.
    var digest: DigestChallenge?
    let since: Duration
    var lastUse: Duration
    /// When the server last looked at the credential and accepted it. A connection that was logged in earlier proves nothing.
    var provenAt: Duration?
    /// Somebody has refused it who may not have been the one that it is for. It is sent after a challenge only, by one fetch
    /// after the other.
    var isDoubted = false
    /// Who has typed it in, or brought it along, where somebody has to be asked about others.
    var bringers: [GrantBook.Holder] = []
    var standing: Standing

    var challenger: Challenger { Challenger(space) }

    var isHandshake: Bool { space.authenticationMethod == .ntlm || space.authenticationMethod == .negotiate }

    /// How much of `path` the entry is good for; `nil` when it is outside.
    func matchLength(of path: ExactText) -> Int? {
        let match = directories.lazy.filter { path.hasPrefix($0) }.map(\.utf8.count).max()
        guard space.authenticationMethod == .httpDigest else { return match }
        // To a proxy `domain` means nothing (RFC 7616 section 3.3).
        guard let domain = digest?.domain, case .server(let origin) = challenger else { return match ?? 0 }
        return domain.matchLength(of: path, at: origin).map { max($0, match ?? 0) }
    }

    mutating func noteBringer(_ holder: GrantBook.Holder?) {
        guard let holder, !bringers.contains(where: { $0.isSame(as: holder) }) else { return }
        bringers = bringers.suffix(SessionLimits.bringers - 1) + [holder]
    }

    mutating func note(_ directory: ExactText, digest newer: DigestChallenge?, now: Duration, maxPaths: Int) {
        lastUse = now
        digest = newer
        guard !directories.contains(where: { directory.hasPrefix($0) }) else { return }
        directories.removeAll { $0.hasPrefix(directory) }
        if directories.count >= maxPaths { directories.removeFirst() }
        directories.append(directory)
    }
}

/// A credential that somebody handed over before any server asked.
struct GivenCredential: Sendable {
    let number: Int
    let pattern: SpacePattern
    /// In whose part it is; `nil` for that of all.
    let owner: Partition?
    let credential: LoginCredential
    let since: Duration
    var standing: Standing

    /// How good it is, its path first: the default among all goes before what says more of what it is for.
    func precedes(_ other: GivenCredential) -> Bool {
        let (own, others) = (credential.pathLength, other.credential.pathLength)
        if own != others { return own > others }
        if standing.isPreferred != other.standing.isPreferred { return standing.isPreferred }
        if pattern.exactness != other.pattern.exactness { return pattern.exactness > other.pattern.exactness }
        return standing.precedes(other.standing)
    }
}

/// What the session cache says of an entry: everything but the secret.
struct SessionListing: Sendable, Equatable {
    let number: Int
    let isToken: Bool
    let space: SpacePattern
    let user: ExactText?
    let domain: ExactText?
    let path: ExactText?
    let expiresAt: Duration?
    let owner: Partition?
    var isDefault: Bool
    let since: Duration
    /// `nil` for a credential that was not used yet.
    let lastUse: Duration?

    init(_ entry: SessionEntry) {
        number = entry.number
        isToken = entry.credential.form == .token
        space = SpacePattern(entry.space)
        user = entry.credential.shownUser
        domain = entry.credential.account.domain
        path = entry.credential.path
        expiresAt = entry.credential.expiresAt
        owner = entry.owner
        isDefault = false
        since = entry.since
        lastUse = entry.lastUse
    }

    init(_ given: GivenCredential) {
        number = given.number
        isToken = given.credential.form == .token
        space = given.pattern
        user = given.credential.shownUser
        domain = given.credential.account.domain
        path = given.credential.path
        expiresAt = given.credential.expiresAt
        owner = given.owner
        isDefault = false
        since = given.since
        lastUse = nil
    }
}

extension SpacePattern {
    /// How much of a space it names.
    var exactness: Int { (realm == nil ? 0 : 2) + (authenticationMethod == nil ? 0 : 1) }
}
