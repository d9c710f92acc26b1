import WatchwordProtocol

@testable import WatchwordCore

/// Checks that an answer to a Digest challenge contains each parameter once, with the server's values, and neither the password
/// nor a user name to be hashed, and that only the correct proof of the server is accepted.
///
/// The lines are the parameters, the user, the password, and the request target.
func checkDigest(_ bytes: [UInt8]) throws {
    let lines = bytes.lines + ["", "", "", ""]
    // libcurl delivers no fields with control characters.
    guard bytes.count < 4096, !lines[0].hasControlCharacters, !lines[3].hasControlCharacters else { return }
    guard let challenge = ChallengeHeader.parse(fields: ["Digest \(lines[0])"]).first,
        !challenge.hasDuplicateParameters, let digest = DigestChallenge(challenge)
    else { return }
    let password = Array(lines[2].utf8).withUnsafeBytes { Secret(copying: $0) }
    let credential = LoginCredential(user: ExactText(lines[1]), password: password)
    guard digest.charset.bytes(of: credential) != nil else { return }
    let target = "/" + lines[3]
    var nonces = DigestNonces()
    let server = Challenger.server(Origin(scheme: .http, host: "h", port: 80))
    let response = nonces.nextResponse(to: digest, at: server, clientNonce: "0123456789abcdef")
    let request = DigestRequest(method: "GET", target: target)
    let answer = response.authorization(for: credential, request).withUnsafeBytes { Array($0) }
    try checkAnswer(answer, to: digest, target: target)
    // Text that another user's answer contains too, such as `qop=auth`, reveals nothing.
    let other = LoginCredential(user: "else", password: Array("anything".utf8).withUnsafeBytes { Secret(copying: $0) })
    let others = response.authorization(for: other, request).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    let told = [lines[0], target, "0123456789abcdef", others].joined(separator: "\n")
    try checkAbsent(lines[2], in: answer, told: told + "\n" + lines[1], "the password")
    if digest.hashesUser { try checkAbsent(lines[1], in: answer, told: told, "the user") }
    try checkProof(response, target: target, credential)
}

private func checkAnswer(_ answer: [UInt8], to digest: DigestChallenge, target: String) throws {
    try hold(!answer.contains { $0 < 0x20 || $0 == 0x7F }, "a control character in the answer")
    let text = String(decoding: answer, as: UTF8.self)
    let read = ChallengeHeader.parse(fields: [text])
    try hold(read.count == 1 && read[0].scheme == "Digest", "the answer is parsed as \(read)")
    let answered = read[0]
    try hold(!answered.hasDuplicateParameters, "duplicate parameters: \(text)")
    try hold(
        answered.realm == digest.realm && answered["nonce"].map { ExactText($0) } == digest.nonce,
        "not the server's values: \(text)")
    try hold(answered["uri"] == target && answered["opaque"] == digest.opaque, "not the server's values: \(text)")
    try hold(answered["response"]?.utf8.allSatisfy { $0.isHexadecimal } == true, "no response: \(text)")
    let known: Set = [
        "username", "username*", "realm", "nonce", "uri", "algorithm", "qop", "nc", "cnonce", "opaque", "userhash",
        "response",
    ]
    try hold(answered.parameters.allSatisfy { known.contains($0.name) }, "unexpected parameters: \(text)")
    try hold(
        (answered["username"] == nil) != (answered["username*"] == nil),
        "not exactly one of username and username*: \(text)")
}

private func checkAbsent(_ secret: String, in answer: [UInt8], told: String, _ what: String) throws {
    guard secret.utf8.count >= 8, !told.contains(secret) else { return }
    try hold(!String(decoding: answer, as: UTF8.self).contains(secret), "the answer contains \(what)")
}

private func checkProof(_ response: DigestResponse, target: String, _ credential: LoginCredential) throws {
    let protection = response.challenge.protection
    let proof = response.proof(
        for: credential, target: target, protection: protection,
        bodyHash: response.challenge.algorithm.hexDigest(of: [.bytes([])]))
    let text = proof.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    let wrong = text.dropLast() + (text.hasSuffix("0") ? "1" : "0")
    let exchange = DigestExchange(response: response, requestTarget: target)
    let right = AuthenticationInfo(fields: ["rspauth=\"\(text)\""])
    try hold(exchange.isProven(by: right, for: credential, body: []), "the correct proof is rejected")
    for fields in [["rspauth=\"\(wrong)\""], ["rspauth=\"\(text)\"", "rspauth=\"\(wrong)\""], ["rspauth=\"\""]] {
        let info = AuthenticationInfo(fields: fields)
        try hold(!exchange.isProven(by: info, for: credential, body: []), "a wrong proof is accepted")
    }
}

extension UInt8 {
    fileprivate var isHexadecimal: Bool { (0x30...0x39).contains(self) || (0x61...0x66).contains(self) }
}
