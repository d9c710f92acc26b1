internal import WatchwordProtocol

/// The grants that the session has in memory, besides those in the keyring.
public struct SessionGrants: Sendable {
    /// A grant in memory, in the keyring, or in both.
    public struct Stored: Sendable {
        public let key: OAuthGrant.Key
        /// `nil` while it is locked.
        public let grant: OAuthGrant?
        /// The name of its item; `nil` if only the session has it.
        public let item: String?
    }

    /// Where a grant is to be found.
    public enum Source: Sendable, Equatable {
        case session(OAuthGrant?)
        /// The keyring is read each time, because another program may have renewed the grant: a refresh token that is used twice
        /// ends the login. `otherwise` is used if it cannot be read.
        case keyring(otherwise: OAuthGrant?)
    }

    private struct Place: Hashable {
        let key: OAuthGrant.Key
        /// The client for which it is; `nil` for all.
        let owner: ClientTag?

        func isOf(_ client: ClientTag?) -> Bool { owner == nil || owner == client }
    }

    /// A grant in memory. Its times are limited as those of a credential in the session, also if the keyring has it.
    private struct Known {
        var grant: OAuthGrant
        /// When a person logged in.
        let since: Duration
        var lastUse: Duration
        /// Whether the keyring has this grant, or a newer one.
        var isSaved = false
    }

    private var grants: [Place: Known] = [:]
    /// The grants that are being removed from the keyring, and how many calls remove each.
    private var removals: [OAuthGrant.Key: Int] = [:]

    public init() {}

    public var isEmpty: Bool { grants.isEmpty }

    /// Uses a grant. Until the keyring has removed a forgotten one, it is not found.
    public mutating func use(_ key: OAuthGrant.Key, of owner: ClientTag?, hasKeyring: Bool, now: Duration) -> Source {
        let place = Place(key: key, owner: owner)
        grants[place]?.lastUse = now
        guard let known = grants[place], !known.isSaved else {
            if removals[key] != nil { return .session(nil) }
            let kept = grants[place]?.grant
            return hasKeyring ? .keyring(otherwise: kept) : .session(kept)
        }
        return .session(known.grant)
    }

    /// - Parameters:
    ///   - owner: the client for whose session it is; `nil` for all.
    ///   - isNew: whether a person has logged in.
    public mutating func record(_ grant: OAuthGrant, of owner: ClientTag?, isNew: Bool, now: Duration) {
        let place = Place(key: grant.key, owner: owner)
        grants[place] = Known(grant: grant, since: isNew ? now : grants[place]?.since ?? now, lastUse: now)
    }

    /// Records that the keyring has this grant. No effect if the session has a newer one meanwhile.
    public mutating func recordSaved(_ grant: OAuthGrant, of owner: ClientTag?) {
        let place = Place(key: grant.key, owner: owner)
        if grants[place]?.grant == grant { grants[place]?.isSaved = true }
    }

    /// Returns the grants that a client may manage: those in the keyring, its own, and the shared ones.
    /// - Parameter items: the grants in the keyring. The session has the access tokens; the keyring knows those of earlier sessions.
    public func all(of client: ClientTag, with items: [KeyringItem]) -> [Stored] {
        let known = grants.filter { $0.key.isOf(client) }.map { ($0.key.key, $0.value.grant) }
        let stored = items.compactMap { item in
            OAuthGrant.Key(item).map { key in
                Stored(key: key, grant: known.first { $0.0 == key }?.1 ?? OAuthGrant(item), item: item.id)
            }
        }
        let rest = known.filter { key, _ in !stored.contains { $0.key == key } }
        return stored + rest.map { Stored(key: $0, grant: $1, item: nil) }
    }

    /// Removes the grants whose time is over.
    /// - Parameter lastUse: returns when an access token was last used.
    public mutating func expire(_ limits: SessionLimits, now: Duration, lastUse: (TokenDigest) -> Duration?) {
        for (place, known) in grants where !limits.allow(since: known.since, lastUse: known.lastUse, now: now) {
            let token = (try? FetchURL(place.key.resource)).flatMap { url in
                known.grant.access.map { TokenDigest($0, for: url.origin) }
            }
            let used = max(known.lastUse, token.flatMap(lastUse) ?? .zero)
            if limits.allow(since: known.since, lastUse: used, now: now) {
                grants[place]?.lastUse = used
            } else {
                grants[place] = nil
            }
        }
    }

    /// Forgets the grants of an origin, or all of them.
    public mutating func endSession(_ origin: Origin?) {
        grants = grants.filter { place, _ in origin.map { (try? FetchURL(place.key.resource))?.origin != $0 } ?? false }
    }

    /// Forgets what only this client could use.
    public mutating func endSession(of client: ClientTag) { grants = grants.filter { $0.key.owner != client } }

    /// Forgets grants of all, and of this client.
    public mutating func forget(_ keys: Set<OAuthGrant.Key>, of client: ClientTag?) {
        grants = grants.filter { !keys.contains($0.key.key) || !$0.key.isOf(client) }
    }

    /// Records that a call begins to remove grants from the keyring.
    public mutating func beginRemoval(of keys: Set<OAuthGrant.Key>) {
        for key in keys { removals[key, default: 0] += 1 }
    }

    public mutating func endRemoval(of keys: Set<OAuthGrant.Key>) {
        for key in keys { removals[key] = removals[key].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }
}

/// The order in which searches for tokens use grants: a refresh token is used once.
public struct GrantQueue: Sendable {
    /// The searches that use a grant, the first one now.
    private var users: [OAuthGrant.Key: [Int]] = [:]

    public init() {}

    /// Returns whether a search uses the grant now. If not, `release` returns it later.
    public mutating func use(_ key: OAuthGrant.Key, by search: Int) -> Bool {
        if users[key]?.contains(search) != true { users[key, default: []].append(search) }
        return users[key]?.first == search
    }

    /// Ends the use of grants by a search. Returns the next search of each.
    public mutating func release(_ search: Int) -> [(key: OAuthGrant.Key, search: Int)] {
        var next: [(OAuthGrant.Key, Int)] = []
        for (key, searches) in users where searches.contains(search) {
            let rest = searches.filter { $0 != search }
            users[key] = rest.isEmpty ? nil : rest
            if searches.first == search, let first = rest.first { next.append((key, first)) }
        }
        return next
    }
}
