internal import JSONText
public import WatchwordProtocol

/// The grant of a person at an authorization server: a refresh token with its issuer, client and scopes. Stored in the
/// keyring.
public struct OAuthGrant: Sendable, Equatable {
    /// The purpose of a grant. There is one grant for each.
    public struct Key: Sendable, Hashable {
        /// The resource of the rule.
        public let resource: String
        public let issuer: String
        /// The configured client id; empty if the client was registered.
        public let clientID: String
    }

    public let key: Key
    /// The granted scopes, sorted.
    public internal(set) var scopes: [String]
    public internal(set) var refresh: Secret
    /// The client that was registered (RFC 7591), if there was none in the configuration.
    var registered: OAuthClient?
    /// The key to which the tokens are bound; `nil` for none.
    var proofKey: ProofKey?
    /// The last access token; not stored in the keyring.
    public internal(set) var access: Secret?
    /// The scopes that were requested, but not granted.
    var denied: [String] = []

    /// Names the item of a grant.
    fileprivate static let marker: ExactText = "watchword-grant"

    init(_ key: Key, scopes: [String], refresh: Secret, registered: OAuthClient?) {
        (self.key, self.scopes, self.refresh, self.registered) = (key, scopes, refresh, registered)
    }

    // MARK: The keyring

    /// The query that finds all grants.
    public static let query: [ExactText: ExactText] = [marker: "1"]

    public static func attributes(of key: Key) -> [ExactText: ExactText] {
        [
            marker: "1", "resource": ExactText(key.resource), "issuer": ExactText(key.issuer),
            "client-id": ExactText(key.clientID),
        ]
    }

    /// The label, which programs that manage the keyring show.
    public var label: String { "Login at \(key.issuer.shortened) for \(key.resource.shortened)" }

    /// Returns the contents of the item.
    public var secret: Secret {
        let client: JSON? = registered.map { client in
            [
                "id": .string(client.id),
                "secret": client.secret.flatMap { $0.withUnsafeBytes { JSON.string(secret: $0) } },
            ]
        }
        let json: JSON = [
            "refreshToken": refresh.withUnsafeBytes { JSON.string(secret: $0) },
            "scopes": .array(scopes.map { .string($0) }), "denied": .array(denied.map { .string($0) }),
            "client": client, "key": proofKey.flatMap { Self.text(of: $0.privateKey) },
        ]
        var text = json.serialized()
        defer { text.withUnsafeMutableBytes(WipingBuffer.wipe) }
        return text.withUnsafeBytes { Secret(copying: $0) }
    }

    /// Returns a secret in Base64, as a JSON string.
    private static func text(of secret: Secret) -> JSON? {
        let encoded = Secret(capacity: Base64.encodedCount(secret.count)) { block in
            secret.withUnsafeBytes { Base64.encode($0, into: block) }
            return block.count
        }
        return encoded.withUnsafeBytes { JSON.string(secret: $0) }
    }

    /// Reads an item; `nil` if it is not that of a grant, or locked.
    public init?(_ item: KeyringItem) {
        guard let key = Key(item),
            let json = item.secret.flatMap({ $0.withUnsafeBytes { OAuthDocument.parse(Array($0)) } }),
            let refresh = json.secret("refreshToken"), !refresh.isEmpty
        else { return nil }
        self.key = key
        scopes = json.strings("scopes")
        denied = json.strings("denied")
        proofKey = (json["key"]?.withUTF8 { Base64.decode($0) } ?? nil).flatMap { der in
            var der = der
            defer { der.withUnsafeMutableBytes(WipingBuffer.wipe) }
            return ProofKey(der.withUnsafeBytes { Secret(copying: $0) })
        }
        self.refresh = refresh
        registered = json["client"]?["id"]?.string.map { OAuthClient(id: $0, secret: json["client"]?.secret("secret")) }
    }
}

extension OAuthGrant.Key {
    /// Reads the attributes of an item, which may be locked; `nil` if it is not that of a grant.
    public init?(_ item: KeyringItem) {
        guard item.attributes[OAuthGrant.marker] == "1", let resource = item.attributes["resource"],
            let issuer = item.attributes["issuer"], let client = item.attributes["client-id"]
        else { return nil }
        self.init(resource: resource.string, issuer: issuer.string, clientID: client.string)
    }
}
