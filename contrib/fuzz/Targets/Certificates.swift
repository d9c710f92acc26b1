import COpenSSL
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Checks that a certificate has the same facts as its PEM, and that they contain no terminal control characters, and that an
/// unusable client certificate fails with a cause.
///
/// The first byte selects the format of the rest.
func checkCertificates(_ bytes: [UInt8]) throws {
    guard let kind = bytes.first, bytes.count > 1 else { return }
    let rest = Array(bytes[1...])
    switch kind % 3 {
    case 0: try checkFacts(rest) { d2i_X509_bio($0, nil) }
    case 1: try checkFacts(rest) { PEM_read_bio_X509($0, nil, nil, nil) }
    default: try checkClientCertificate(rest)
    }
}

private func checkFacts(_ bytes: [UInt8], _ read: (OpaquePointer?) -> OpaquePointer?) throws {
    guard let facts = CertificateFacts(bytes, read) else { return }
    try hold(facts.sha256.count == 32, "no fingerprint")
    try hold([0, 32].contains(facts.spkiSha256.count), "no fingerprint of the key")
    for text in [facts.subject, facts.issuer] { try hold(!text.hasControlCharacters, "\(text) is not clean") }
    for time in [facts.notBefore, facts.notAfter] {
        try hold([0, 20].contains(time.utf8.count), "\(time) is not a time")
    }
    for name in facts.subjectAltNames {
        try hold(name.hasPrefix("DNS:") || name.hasPrefix("IP:"), "\(name) has no kind")
        try hold(name.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "\(name) is not clean")
    }
    let again = CertificateFacts(Array(facts.pem.utf8)) { PEM_read_bio_X509($0, nil, nil, nil) }
    try hold(again == facts, "the PEM is read as \(again.map { "\($0)" } ?? "nothing"), not \(facts)")
}

private func checkClientCertificate(_ bytes: [UInt8]) throws {
    func secret(_ bytes: [UInt8]) -> Secret { bytes.withUnsafeBytes { Secret(copying: $0) } }
    let given = ClientCertificate(certificate: .bytes(secret(bytes)), passphrase: secret(Array("opensesame".utf8)))
    do throws(TransferFailure) {
        _ = try LoadedCertificate(given)
    } catch {
        try hold(error.kind == .tlsFailed && error.cause != nil, "a failure without a cause: \(error)")
        try hold(!"\(error)".contains("opensesame"), "a failure reveals the passphrase")
    }
}

extension CertificateFacts {
    fileprivate init?(_ bytes: [UInt8], _ read: (OpaquePointer?) -> OpaquePointer?) {
        let certificate = bytes.withUnsafeBytes { bytes -> OpaquePointer? in
            let input = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
            defer { BIO_free_all(input) }
            return read(input)
        }
        ERR_clear_error()
        guard let certificate else { return nil }
        defer { X509_free(certificate) }
        self.init(certificate)
    }
}
