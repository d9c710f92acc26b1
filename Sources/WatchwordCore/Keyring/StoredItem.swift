public import WatchwordProtocol

/// An item of the keyring as `credential/list` shows it: where it belongs, as far as it says so itself.
public struct StoredItem: Sendable, Equatable {
    public let id: String
    public let pattern: SpacePattern
    public let account: Account
    public let isDefault: Bool
    /// What is good for this path and below only; `nil` for the whole server.
    public let path: ExactText?
    /// Since 1970; `nil` where the secret was not asked for, or does not say.
    public let expiresAt: Duration?
    private let all: [ExactText: ExactText]

    /// `nil` for an item that names no server, no user, or a protocol that is not HTTP.
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

    /// Whether both are for the same, so that one of them is the default.
    public func isBeside(_ other: StoredItem) -> Bool {
        pattern == other.pattern && path == other.path
    }

    /// The item's attributes with or without the mark of the default.
    public func attributes(isDefault: Bool) -> [ExactText: ExactText] {
        var attributes = all
        attributes[KeyringAttributes.preferred] = isDefault ? "1" : nil
        return attributes
    }
}
