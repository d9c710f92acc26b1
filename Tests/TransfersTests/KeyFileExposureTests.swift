import Glibc
import TestServers
import Testing
import WatchwordCore

@testable import Transfers

/// Files with keys that other users can access.
@Suite struct KeyFileExposureTests {
    private static let client = TestCertificate("client")

    @Test(
        arguments: [
            (0o600, 1000, false), (0o400, 1000, false), (0o700, 1000, false), (0o640, 1000, true), (0o604, 1000, true),
            (0o620, 1000, true), (0o601, 1000, true), (0o644, 1000, true), (0o600, 0, false), (0o640, 0, false),
            (0o660, 0, true), (0o644, 0, true), (0o600, 1001, true), (0o000, 1001, true),
        ] as [(mode_t, uid_t, Bool)])
    func exposureDependsOnModeAndOwner(mode: mode_t, owner: uid_t, isExposed: Bool) {
        let exposure = KeyFileExposure(mode: S_IFREG | mode, owner: owner, user: 1000, path: "/k.pem")
        #expect((exposure != nil) == isExposed)
        #expect(KeyFileExposure(mode: 0o640, owner: 0, user: 0, path: "/k.pem") != nil)
    }

    @Test func theTextNamesFileReasonAndRemedy() {
        func text(_ mode: mode_t, _ owner: uid_t) -> String? {
            KeyFileExposure(mode: S_IFREG | mode, owner: owner, user: 1000, path: "/a b/k.pem")?.text
        }
        #expect(
            text(0o644, 1000)
                == "the private key file '/a b/k.pem' is not protected: other users can read it (mode 0644); "
                + "run \"chmod 600 '/a b/k.pem'\"")
        #expect(text(0o622, 1000)?.contains("other users can change it (mode 0622)") == true)
        #expect(text(0o601, 1000)?.contains("other users can execute it (mode 0601)") == true)
        #expect(text(0o644, 0)?.hasSuffix("as root, run \"chmod 640 '/a b/k.pem'\"") == true)
        #expect(text(0o600, 1001)?.contains("belongs to user 1001") == true)
    }

    /// The check applies to every form of key and every way to name its file, but only to files that contain a key.
    @Test func everyFileWithAKeyIsChecked() throws {
        let certificate = try TemporaryFile(Self.client.pem)
        let plain = try TemporaryFile(Self.client.keyPEM())
        let locked = try TemporaryFile(Self.client.keyPEM(passphrase: "pass phrase"))
        let both = try TemporaryFile(Self.client.pem + Self.client.keyPEM())
        let store = try TemporaryFile(Self.client.pkcs12(passphrase: "pass phrase"))
        let link = "\(plain.path)-link"
        #expect(symlink(plain.path, link) == 0)
        let files = [certificate, plain, locked, both, store]
        defer {
            for file in files { file.remove() }
            unlink(link)
        }
        func load(_ file: String, _ key: String?, _ passphrase: String? = nil) -> TransferFailure.Cause? {
            let given = ClientCertificate(
                certificate: .file(file), privateKey: key.map { .file($0) }, passphrase: passphrase.map(secret))
            do throws(TransferFailure) {
                _ = try LoadedCertificate(given)
                return nil
            } catch {
                return error.cause
            }
        }
        chmod(certificate.path, 0o644)
        for (mode, expected) in [(0o600, nil), (0o644, .clientKeyExposed)] as [(mode_t, TransferFailure.Cause?)] {
            for file in files.dropFirst() { chmod(file.path, mode) }
            #expect(load(certificate.path, plain.path) == expected)
            #expect(load(certificate.path, link) == expected)
            #expect(load(certificate.path, locked.path, "pass phrase") == expected)
            #expect(load(both.path, nil) == expected)
            #expect(load(store.path, nil, "pass phrase") == expected)
        }
        // No passphrase is requested for a key that is not used anyway.
        #expect(load(certificate.path, locked.path) == .clientKeyExposed)
        #expect(load(store.path, nil) == .clientKeyExposed)
        // A file without a key is not checked.
        #expect(load(certificate.path, nil) == .clientCertificateUnreadable)
        chmod(plain.path, 0o600)
        #expect(load(both.path, plain.path) == nil)
    }
}
