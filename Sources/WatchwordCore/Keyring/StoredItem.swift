public import WatchwordProtocol

/// A keyring item as `credential/list` shows it, with the space that its attributes name.
public struct StoredItem: Sendable, Equatable {
    public let id: String
    public let pattern: SpacePattern
    public let account: Account
    public let isDefault: Bool
    /// The path at and below which the item is valid; `nil` for the whole server.
    public let path: ExactText?
    /// The time, since 1970, when the credential expires; `nil` if unknown or if the secret was not requested.
    public let expiresAt: Duration?
    private let all: [ExactText: ExactText]

    /// Returns `nil` for an item without a server or a user, or with a protocol other than HTTP.
    public init?(_ item: KeyringItem) {
        let attributes = item.attributes
        let scheme = attributes["protocol"]?.asciiLowercased
        let proxyType = scheme.flatMap(KeyringAttributes.proxyType)
        let method = attributes["authtype"].flatMap { KeyringAttributes.method(ofAuthtype: $0) }
        guard let server = attributes["server"], !server.isEmpty,
            let account = KeyringAttributes.account(attributes, method), let scheme,
            scheme == "http" || scheme == "https" || proxyType != nil
        else { return nil }
        let port = attributes["port"].flatMap { Int($0.string) } ?? 0
        guard (0...65_535).contains(port) else { return nil }
        id = item.id
        self.account = account
        isDefault = item.isMarkedDefault
        path = KeyringAttributes.path(attributes)
        expiresAt = item.secret.flatMap { KeyringSecret($0) }?.expiresAt
        all = attributes
        pattern = SpacePattern(
            scheme: scheme.string, host: server,
            port: port > 0 ? port : proxyType?.defaultPort ?? (scheme == "https" ? 443 : 80),
            realm: KeyringAttributes.realm(attributes, method), authenticationMethod: method, proxyType: proxyType)
    }

    /// Whether both items are for the same space and path, which have one default.
    public func isBeside(_ other: StoredItem) -> Bool {
        pattern == other.pattern && path == other.path
    }

    /// Returns the attributes of the item, with or without the mark of the default.
    public func attributes(isDefault: Bool) -> [ExactText: ExactText] {
        var attributes = all
        attributes[KeyringAttributes.preferred] = isDefault ? "1" : nil
        return attributes
    }
}
