internal import WatchwordProtocol

/// The parameters of a Digest challenge (RFC 7616 section 3.3).
struct DigestChallenge: Sendable, Equatable {
    /// The data that the response covers (RFC 7616 section 3.4, `qop`).
    enum Protection: String, Sendable {
        /// Method and request target.
        case auth
        /// Method, request target and body.
        case authInt = "auth-int"
        /// RFC 2069: like `auth`, but without a nonce count and a client nonce. Such a response can be replayed, and
        /// attacked with precomputed tables.
        case legacy

        /// Returns `nil` for an unknown option.
        init?(option: String) {
            self.init(rawValue: option.asciiLowercased)
            if self == .legacy { return nil }
        }
    }

    let realm: ExactText
    private(set) var nonce: ExactText
    let opaque: String?
    let algorithm: DigestAlgorithm
    /// The name of the algorithm as the server wrote it, which the response repeats; `nil` if it named none.
    let algorithmName: String?
    let protection: Protection
    private(set) var charset: DigestCharset
    /// Whether the user name is sent as a hash (RFC 7616 section 3.4.4).
    let hashesUser: Bool
    /// `nil` for the whole server.
    let domain: DigestDomain?
    /// Whether the server says that only the nonce of the last attempt was too old (`stale`).
    private(set) var isStale: Bool

    /// Returns `nil` if a required parameter is missing, or if the algorithm or every `qop` option is unsupported.
    init?(_ challenge: SchemeChallenge) {
        guard let realm = challenge.realm, let nonce = challenge["nonce"].map({ ExactText($0) }),
            let algorithm = DigestAlgorithm(name: challenge["algorithm"]),
            let protection = Self.protection(challenge["qop"], algorithm)
        else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.opaque = challenge["opaque"]
        self.algorithm = algorithm
        self.algorithmName = challenge["algorithm"]
        self.protection = protection
        self.charset = DigestCharset(name: challenge["charset"])
        self.hashesUser = challenge["userhash"]?.equalsIgnoringASCIICase("true") ?? false
        self.domain = DigestDomain(challenge["domain"])
        self.isStale = challenge["stale"]?.equalsIgnoringASCIICase("true") ?? false
    }

    /// Returns why the broker does not answer the challenge; `nil` if it does.
    static func refusal(of challenge: SchemeChallenge) -> Unanswered.Reason? {
        if DigestChallenge(challenge) != nil { return nil }
        if challenge.realm == nil { return .noRealm }
        let isOtherwiseKnown = challenge["nonce"] != nil && DigestAlgorithm(name: challenge["algorithm"]) != nil
        return isOtherwiseKnown && challenge["qop"] == nil ? .noQop : .malformed
    }

    /// Returns the challenge with the nonce for the next request (RFC 7616 section 3.5, `nextnonce`).
    func followed(by nonce: ExactText) -> DigestChallenge {
        var next = self
        next.nonce = nonce
        next.isStale = false
        return next
    }

    /// Returns the challenge of a server that the configuration lists for ISO 8859-1, or of another one.
    func expectingLatin1(_ isListed: Bool) -> DigestChallenge {
        guard charset != .utf8 else { return self }
        var challenge = self
        challenge.charset = isListed ? .latin1 : .unstated
        return challenge
    }

    /// Returns the option to use: `auth` rather than `auth-int`, which does not hide the body, and makes servers buffer
    /// it.
    private static func protection(_ qop: String?, _ algorithm: DigestAlgorithm) -> Protection? {
        // `-sess` needs a client nonce, which RFC 2069 does not have.
        guard let qop else { return algorithm.isSession ? nil : .legacy }
        let options = qop.split { $0 == "," || $0 == " " || $0 == "\t" }.compactMap { Protection(option: String($0)) }
        return [Protection.auth, .authInt].first { options.contains($0) }
    }
}
