internal import WatchwordProtocol

/// What answering a Digest challenge takes (RFC 7616 section 3.3).
struct DigestChallenge: Sendable, Equatable {
    /// What the response covers (section 3.4, `qop`).
    enum Protection: String, Sendable {
        /// Method and request target.
        case auth
        /// The body, too.
        case authInt = "auth-int"
        /// As `auth`, without a count and a nonce of the client: RFC 2069. Who listens can try passwords against such an
        /// answer with tables made before, and send it again.
        case legacy

        /// `nil` for an option that is not known.
        init?(option: String) {
            self.init(rawValue: option.asciiLowercased)
            if self == .legacy { return nil }
        }
    }

    let realm: ExactText
    private(set) var nonce: ExactText
    let opaque: String?
    let algorithm: DigestAlgorithm
    /// Whether the server wrote the algorithm's name: what it left out is left out in the answer too.
    let namesAlgorithm: Bool
    let protection: Protection
    let charset: DigestCharset
    /// The user's name travels as a hash (section 3.4.4).
    let hashesUser: Bool
    /// `nil` for the whole server.
    let domain: DigestDomain?
    /// The credential of the last attempt was right, and only its nonce too old.
    private(set) var isStale: Bool

    /// `nil` when something needed is missing, or nothing offered is known here.
    init?(_ challenge: SchemeChallenge) {
        guard let realm = challenge.realm, let nonce = challenge["nonce"].map({ ExactText($0) }),
            let algorithm = DigestAlgorithm(name: challenge["algorithm"]),
            let protection = Self.protection(challenge["qop"], algorithm)
        else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.opaque = challenge["opaque"]
        self.algorithm = algorithm
        self.namesAlgorithm = challenge["algorithm"] != nil
        self.protection = protection
        self.charset = DigestCharset(name: challenge["charset"])
        self.hashesUser = challenge["userhash"]?.equalsIgnoringASCIICase("true") ?? false
        self.domain = DigestDomain(challenge["domain"])
        self.isStale = challenge["stale"]?.equalsIgnoringASCIICase("true") ?? false
    }

    /// Why a challenge is not answered; `nil` where it is.
    static func refusal(of challenge: SchemeChallenge) -> Unanswered.Reason? {
        if DigestChallenge(challenge) != nil { return nil }
        if challenge.realm == nil { return .noRealm }
        let isOtherwiseKnown = challenge["nonce"] != nil && DigestAlgorithm(name: challenge["algorithm"]) != nil
        return isOtherwiseKnown && challenge["qop"] == nil ? .noQop : .malformed
    }

    /// The same with the nonce that the server has announced for the next request (section 3.5, `nextnonce`).
    func followed(by nonce: ExactText) -> DigestChallenge {
        var next = self
        next.nonce = nonce
        next.isStale = false
        return next
    }

    /// `auth` wherever it is offered: hashing the body keeps nobody from reading it, and servers have to hold it back.
    private static func protection(_ qop: String?, _ algorithm: DigestAlgorithm) -> Protection? {
        // `-sess` needs a nonce of the client, which RFC 2069 has not.
        guard let qop else { return algorithm.isSession ? nil : .legacy }
        let options = qop.split { $0 == "," || $0 == " " || $0 == "\t" }.compactMap { Protection(option: String($0)) }
        return [Protection.auth, .authInt].first { options.contains($0) }
    }
}
