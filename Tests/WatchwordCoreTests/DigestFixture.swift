import WatchwordProtocol

@testable import WatchwordCore

/// `parameters` as a challenge, if it can be answered.
func digestChallenge(_ parameters: String) -> DigestChallenge? {
    ChallengeHeader.parse(fields: ["Digest \(parameters)"]).first
        .flatMap { DigestChallenge($0) }
}

/// The challenge whose field has the bytes of `parameters` in ISO 8859-1.
func digestChallenge(latin1 parameters: String) -> DigestChallenge? {
    digestChallenge(received(latin1: parameters))
}

/// The text of a received field with these bytes.
func received(latin1 text: String) -> String {
    text.unicodeScalars.map { UInt8($0.value) }.withUnsafeBytes { String(header: $0) }
}

/// Expected values are of RFC 7616 section 3.9, or computed with Python's hashlib.
enum Mufasa {
    static let credential = LoginCredential(user: "Mufasa", password: secret("Circle of Life"))
    static let nonce: ExactText = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    static let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    static let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
    static let request = DigestRequest(method: "GET", target: "/dir/index.html")

    /// The answer to the challenge of section 3.9.1.
    static func response(
        _ algorithm: String, qop: String? = "auth, auth-int", clientNonce: String = clientNonce,
        sessionNonce: ExactText? = nil, nonce: ExactText = nonce
    ) -> DigestResponse? {
        let option = qop.map { "qop=\"\($0)\", " } ?? ""
        let text =
            "realm=\"http-auth@example.org\", \(option)algorithm=\(algorithm), nonce=\"\(nonce)\", opaque=\"\(opaque)\""
        return digestChallenge(text).map {
            DigestResponse(challenge: $0, nonceCount: 1, clientNonce: clientNonce, sessionNonce: sessionNonce)
        }
    }
}

/// The `Authorization` field of bob's first request for `/`.
func digestField(
    _ parameters: String, user: ExactText = "bob", password: String = "pw", target: String = "/"
) -> String? {
    digestChallenge(parameters).map {
        DigestResponse(challenge: $0, nonceCount: 1, clientNonce: "c").authorization(
            for: LoginCredential(user: user, password: secret(password)),
            DigestRequest(method: "GET", target: target)
        ).latin1
    }
}

extension Secret {
    /// Each byte as the character of ISO 8859-1. For assertions only.
    var latin1: String { withUnsafeBytes { String(String.UnicodeScalarView($0.map { Unicode.Scalar($0) })) } }
}
