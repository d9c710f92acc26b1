import COpenSSL
import Foundation
import TestServers
import Testing

@testable import Transfers

/// The hash function of `tls-server-end-point` (RFC 5929 section 4.1).
@Suite(.realServers) struct ServerEndPointTests {
    private func certificate(_ options: [String]) throws -> (hash: [UInt8]?, der: [UInt8]) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "watchword-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let made = ["-nodes", "-subj", "/CN=h", "-keyout", "\(folder)/key", "-outform", "DER", "-out", "\(folder)/der"]
        try Program.run(["openssl", "req", "-x509"] + options + made)
        let der = [UInt8](try Data(contentsOf: URL(filePath: "\(folder)/der")))
        let parsed = der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return d2i_X509(nil, &start, bytes.count)
        }
        let certificate = try #require(parsed)
        defer { X509_free(certificate) }
        return (ServerEndPoint.hash(of: certificate), der)
    }

    private func digest(_ bytes: [UInt8], _ function: OpaquePointer?) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        EVP_Digest(bytes, bytes.count, &digest, &count, function, nil)
        return Array(digest.prefix(Int(count)))
    }

    @Test func theHashIsThatOfTheSignature() throws {
        for (option, function) in [("-sha256", EVP_sha256()), ("-sha384", EVP_sha384()), ("-sha512", EVP_sha512())] {
            let made = try certificate(["-newkey", "rsa:2048", option])
            #expect(made.hash == digest(made.der, function))
        }
    }

    @Test func sha1IsReplacedBySHA256() throws {
        let made = try certificate(["-newkey", "rsa:2048", "-sha1"])
        #expect(made.hash == digest(made.der, EVP_sha256()))
    }

    @Test func aPSSSignatureUsesTheHashOfItsMessage() throws {
        let made = try certificate(["-newkey", "rsa:2048", "-sha384", "-sigopt", "rsa_padding_mode:pss"])
        #expect(made.hash == digest(made.der, EVP_sha384()))
    }

    @Test func aSignatureWithoutAHashUsesSHA256() throws {
        let made = try certificate(["-newkey", "ed25519"])
        #expect(made.hash == digest(made.der, EVP_sha256()))
    }
}
