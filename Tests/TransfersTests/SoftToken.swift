import Foundation
import TestServers
import WatchwordProtocol

/// A PKCS#11 token of SoftHSM in its own folder. All tests share it, because the module reads its configuration only once.
enum SoftToken {
    static let pin = "4711"
    static let module = "/usr/lib/softhsm/libsofthsm2.so"

    /// Makes tokens named `first` and `second`, each with the key and the certificate of `certificate`, labelled `client`.
    static func make(_ certificate: TestCertificate) throws {
        let folder = URL(filePath: TestFolder.path)
        try FileManager.default.createDirectory(
            at: folder.appending(path: "tokens"), withIntermediateDirectories: false)
        try "directories.tokendir = \(folder.path)/tokens\nlog.level = ERROR\n"
            .write(to: folder.appending(path: "softhsm2.conf"), atomically: true, encoding: .utf8)
        let key = folder.appending(path: "key.pem").path
        let file = folder.appending(path: "certificate.der").path
        try certificate.keyPEM().write(toFile: key, atomically: true, encoding: .utf8)
        try certificate.der.write(to: URL(filePath: file))
        for name in ["first", "second"] {
            try Program.run([
                "softhsm2-util", "--init-token", "--free", "--label", name, "--so-pin", "12345678", "--pin", pin,
            ])
            try Program.run([
                "softhsm2-util", "--import", key, "--token", name, "--label", "client", "--id", "a1", "--pin", pin,
            ])
            try Program.run([
                "pkcs11-tool", "--module", module, "--token-label", name, "--login", "--pin", pin, "--write-object",
                file, "--type", "cert", "--label", "client", "--id", "a1",
            ])
        }
        try FileManager.default.removeItem(atPath: key)
    }
}
