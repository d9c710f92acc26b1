internal import WatchwordProtocol

/// What answering a Digest challenge takes (RFC 7616 section 3.3).
struct DigestChallenge: Sendable, Equatable {
    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: DigestAlgorithm
    /// Whether the server wrote the algorithm's name: what it left out is left out in the answer too.
    let namesAlgorithm: Bool
    /// The credential of the last attempt was right, and only its nonce too old.
    let isStale: Bool

    /// `nil` when something needed is missing, or nothing offered is known here. Without `qop` a server follows RFC 2069,
    /// which protects the request's method and body less; that is not answered.
    init?(_ challenge: SchemeChallenge) {
        guard let realm = challenge.realm, let nonce = challenge["nonce"],
            let algorithm = DigestAlgorithm(name: challenge["algorithm"]),
            let qop = challenge["qop"], Self.options(qop).contains("auth")
        else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.opaque = challenge["opaque"]
        self.algorithm = algorithm
        self.namesAlgorithm = challenge["algorithm"] != nil
        self.isStale = challenge["stale"]?.equalsIgnoringASCIICase("true") ?? false
    }

    private static func options(_ qop: String) -> [String] {
        qop.split { $0 == "," || $0 == " " || $0 == "\t" }.map(\.asciiLowercased)
    }
}
