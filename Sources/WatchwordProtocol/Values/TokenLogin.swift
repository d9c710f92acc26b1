public import JSONText

/// A login in a browser that provides the token for a challenge, as described to respondents (`login` in `auth/challenge`).
///
/// The broker itself gets the token when the login is complete, and withdraws the challenge (`auth/cancelled`, reason
/// `answered`).
public struct TokenLogin: Sendable, Equatable {
    /// A code for a login on any device (RFC 8628 section 3.2).
    public struct DeviceCode: Sendable, Equatable {
        public var userCode: String
        /// The URL that contains the code, if the server has sent one.
        public var completeURL: String?

        public init(userCode: String, completeURL: String?) {
            (self.userCode, self.completeURL) = (userCode, completeURL)
        }
    }

    /// The issuer identifier of the authorization server.
    public var issuer: String
    public var clientID: String
    /// The scopes that are requested, sorted.
    public var scopes: [String]
    /// The address to open: at this machine for a login in a browser of this session; otherwise the verification URI.
    public var url: String
    /// `nil` for a login in a browser of this session.
    public var device: DeviceCode?
    /// The wall-clock time, since 1970, at which the login ends.
    public var expiresAt: Duration

    public init(
        issuer: String, clientID: String, scopes: [String], url: String, device: DeviceCode?, expiresAt: Duration
    ) {
        (self.issuer, self.clientID, self.scopes) = (issuer, clientID, scopes)
        (self.url, self.device, self.expiresAt) = (url, device, expiresAt)
    }

    public var json: JSON {
        [
            "flow": .string(device == nil ? "browser" : "device"), "issuer": .string(issuer),
            "clientId": .string(clientID), "scopes": .array(scopes.map { .string($0) }), "url": .string(url),
            "completeUrl": (device?.completeURL).map { .string($0) },
            "userCode": (device?.userCode).map { .string($0) },
            "expiresAt": .string(UTCTime.text(expiresAt.wholeMilliseconds)),
        ]
    }
}

extension TokenLogin {
    /// Returns `nil` if a member is missing or malformed, or the flow is unknown.
    public init?(_ json: JSON) {
        guard let issuer = json["issuer"]?.string, let clientID = json["clientId"]?.string,
            let url = json["url"]?.string, let scopes = json["scopes"]?.elements?.compactMap(\.string),
            let expiry = json["expiresAt"]?.string.flatMap(UTCTime.rfc3339)
        else { return nil }
        let device: DeviceCode?
        switch json["flow"]?.string {
        case "browser": device = nil
        case "device":
            guard let code = json["userCode"]?.string else { return nil }
            device = DeviceCode(userCode: code, completeURL: json["completeUrl"]?.string)
        default: return nil
        }
        self.init(
            issuer: issuer, clientID: clientID, scopes: scopes, url: url, device: device,
            expiresAt: .milliseconds(expiry))
    }
}

/// The scope of a token, or the scope that a server requires (RFC 6750 section 3): a set of words.
public struct BearerScope: Sendable, Hashable {
    private let words: Set<ExactText>

    /// Returns `nil` if `text` contains no word.
    public init?(_ text: String?) {
        words = Set((text ?? "").split(separator: " ").map { ExactText(String($0)) })
        if words.isEmpty { return nil }
    }

    /// The words, sorted.
    public var names: [String] { words.map(\.string).sorted() }

    /// Whether this scope contains every word of `other`.
    public func covers(_ other: BearerScope) -> Bool { words.isSuperset(of: other.words) }
}

/// A key of the broker to which a token is bound (RFC 9449), on the curve P-256.
public struct ProofKey: Sendable, Equatable {
    /// The private key in DER, as OpenSSL writes it.
    public let privateKey: Secret
    /// The two coordinates of the public key, 32 bytes each.
    public let publicKey: [UInt8]

    public init(privateKey: Secret, publicKey: [UInt8]) { (self.privateKey, self.publicKey) = (privateKey, publicKey) }
}
