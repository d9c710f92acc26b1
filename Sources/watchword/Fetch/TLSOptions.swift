import ArgumentParser
import Glibc
import WatchwordProtocol

/// The options for client certificates and server trust.
struct TLSOptions: ParsableArguments {
    @Option(
        name: [.customShort("E"), .long],
        help: ArgumentHelp(
            "The client certificate for servers that request one: PEM, PKCS#12, or a pkcs11: URI.",
            valueName: "file[:passphrase]"),
        completion: .file())
    var cert: String?

    @Option(
        help: ArgumentHelp("The private key of --cert, if it is in another file.", valueName: "file"),
        completion: .file())
    var key: String?

    @Option(help: ArgumentHelp("The passphrase of the private key.", valueName: "passphrase"))
    var pass: String?

    @Option(
        name: .customLong("pinnedpubkey"),
        help: ArgumentHelp(
            "Trust only a server with this public key, even if its certificate is otherwise invalid.",
            valueName: "sha256//base64"))
    var pinnedPublicKey: String?

    @Flag(
        name: [.customShort("k"), .long],
        help:
            "Show an untrusted certificate and accept it for this fetch; requires a terminal. Still asks if the certificate was revoked, or if its key differs from the one accepted before."
    )
    var insecure = false

    func validate() throws {
        if let pinnedPublicKey { _ = try Self.pin(pinnedPublicKey) }
        if insecure && pinnedPublicKey != nil {
            throw ValidationError("use -k or --pinnedpubkey, not both")
        }
        if cert == nil && (key != nil || pass != nil) {
            throw ValidationError("--key and --pass require --cert")
        }
    }

    func params(_ taken: SecretArguments.Taken, storage: LoginStorage) throws -> TLSParams {
        var params = TLSParams()
        if let pinnedPublicKey {
            params.pin = TrustCredential(spkiSha256: try Self.pin(pinnedPublicKey))
            // Checks the pin even if the certificate verifies.
            params.trust = .always
        }
        params.certificate = try CommandLineCertificate.make(taken, storage: storage)
        return params
    }

    /// Returns the hash of `--pinnedpubkey` in hexadecimal.
    static func pin(_ text: String) throws -> String {
        let prefix = "sha256//"
        var base64 = String(text.dropFirst(prefix.count))
        let hash = base64.withUTF8 { Base64.decode(UnsafeRawBufferPointer($0)) }
        guard text.hasPrefix(prefix), let hash, hash.count == 32 else {
            throw ValidationError(
                "--pinnedpubkey takes one hash: sha256// and 44 characters of base64; files and lists are not supported"
            )
        }
        return Hexadecimal.text(hash)
    }
}
