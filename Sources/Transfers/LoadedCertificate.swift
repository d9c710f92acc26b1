internal import CKeyDerivation
internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// A client certificate with its key, as OpenSSL objects. A context that uses it holds references of its own.
final class LoadedCertificate {
    private var certificate: OpaquePointer?
    private var key: OpaquePointer?
    /// The issuers, in the order of the chain.
    private var chain: OpaquePointer?
    private(set) var content = CertificateContent(sha256: [])

    /// Blocks the calling thread while it reads files or asks a token.
    /// - Parameter tokenModule: the PKCS#11 module; `nil` for that of p11-kit.
    /// - Throws: `TransferFailure` of kind `tlsFailed` with the cause.
    init(_ given: ClientCertificate, tokenModule: String? = nil) throws(TransferFailure) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        var file: CertificateFile?
        if case .token(let uri) = given.certificate {
            certificate = try TokenURI(uri, module: tokenModule).certificate()
        } else {
            file = try readCertificate(given)
        }
        content = try contentNow()
        // guard: certificate-content-expected
        if let expected = given.expectedContent, expected != content { throw Self.changed }
        if key == nil { try readKey(given, file, tokenModule) }
        if X509_check_private_key(certificate, key) != 1 {
            throw Self.failure("the private key does not belong to the client certificate", .clientKeyMismatch)
        }
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
        OPENSSL_sk_pop_free(chain) { X509_free($0.map { OpaquePointer($0) }) }
    }

    func use(in context: OpaquePointer) -> Bool {
        SSL_CTX_use_cert_and_key(context, certificate, key, chain, 1) == 1
    }

    private func contentNow() throws(TransferFailure) -> CertificateContent {
        let issuers = chain.map { chain in
            (0..<OPENSSL_sk_num(chain)).map { OPENSSL_sk_value(chain, $0).map { OpaquePointer($0) } }
        }
        let hashes = ([certificate] + (issuers ?? [])).map { $0.map(CertificateFacts.fingerprint(of:)) ?? [] }
        guard hashes.allSatisfy({ !$0.isEmpty }) else {
            throw TransferFailure(.outOfMemory, "out of memory for a client certificate")
        }
        return CertificateContent(sha256: Array(hashes.joined()))
    }

    private func readCertificates(_ bytes: Secret) throws(TransferFailure) {
        let input = try Self.input(bytes)
        defer { BIO_free_all(input) }
        let noPassphrase = Passphrase(nil)
        certificate = noPassphrase.lend { PEM_read_bio_X509(input, nil, $0, $1) }
        guard certificate != nil, let chain = OPENSSL_sk_new_null() else {
            throw Self.failure("cannot read the client certificate", .clientCertificateUnreadable)
        }
        self.chain = chain
        while let issuer = noPassphrase.lend({ PEM_read_bio_X509(input, nil, $0, $1) }) {
            if OPENSSL_sk_push(chain, UnsafeRawPointer(issuer)) <= 0 {
                X509_free(issuer)
                throw TransferFailure(.outOfMemory, "out of memory for a client certificate")
            }
        }
    }

    /// Reads a certificate from a file or from bytes; from PKCS#12 also its key.
    private func readCertificate(_ given: ClientCertificate) throws(TransferFailure) -> CertificateFile {
        let file = try CertificateFile(given.certificate)
        if file.bytes.withUnsafeBytes({ $0.first == 0x30 }) {
            try file.requirePrivate()
            try readPKCS12(file.bytes, given.passphrase)
        } else {
            try readCertificates(file.bytes)
        }
        return file
    }

    /// - Parameter file: the file of the certificate, which contains the key unless another file is given.
    private func readKey(
        _ given: ClientCertificate, _ file: CertificateFile?, _ tokenModule: String?
    ) throws(TransferFailure) {
        switch given.privateKey ?? given.certificate {
        case .token(let uri): key = try TokenURI(uri, module: tokenModule).key(given.passphrase)
        case let material:
            if given.privateKey == nil, let file { return try readKey(file, given.passphrase) }
            try readKey(try CertificateFile(material), given.passphrase)
        }
    }

    private func readKey(_ file: CertificateFile, _ passphrase: Secret?) throws(TransferFailure) {
        let input = try Self.input(file.bytes)
        defer { BIO_free_all(input) }
        try Self.check(rounds: watchword_rounds_of_pem(input))
        _ = BIO_ctrl(input, BIO_CTRL_RESET, 0, nil)
        ERR_clear_error()
        let source = Passphrase(passphrase)
        key = source.lend { PEM_read_bio_PrivateKey(input, nil, $0, $1) }
        if key != nil || source.wasAsked { try file.requirePrivate() }
        guard key == nil else { return }
        throw source.wasAsked
            ? Self.wrongPassphrase
            : Self.failure("cannot read the private key of the client certificate", .clientCertificateUnreadable)
    }

    private func readPKCS12(_ bytes: Secret, _ passphrase: Secret?) throws(TransferFailure) {
        let input = try Self.input(bytes)
        defer { BIO_free_all(input) }
        guard let store = d2i_PKCS12_bio(input, nil) else {
            throw Self.failure("cannot read the client certificate", .clientCertificateUnreadable)
        }
        defer { PKCS12_free(store) }
        try Self.check(rounds: watchword_rounds_of_mac(store))
        let text = passphrase ?? Secret(capacity: 0) { _ in 0 }
        try text.withTerminatedBytes { text throws(TransferFailure) in
            // Without a passphrase, the MAC may have been computed with no passphrase or with an empty one.
            let isRight =
                PKCS12_verify_mac(store, text, -1) == 1 || (text[0] == 0 && PKCS12_verify_mac(store, nil, 0) == 1)
            if PKCS12_mac_present(store) == 1 && !isRight { throw Self.wrongPassphrase }
            try Self.check(rounds: watchword_rounds_of_pkcs12(store, text, EngineLimits.derivationRounds))
            _ = PKCS12_parse(store, text, &key, &certificate, &chain)
        }
        guard certificate != nil, key != nil else {
            throw Self.failure("no usable certificate with a key in the PKCS#12 file", .clientCertificateUnreadable)
        }
    }

    /// Rejects a file with too many rounds before OpenSSL derives its keys, which cannot be interrupted.
    private static func check(rounds: UInt64) throws(TransferFailure) {
        guard rounds > EngineLimits.derivationRounds else { return }
        throw failure(
            "deriving the key of the client certificate from its passphrase takes too many rounds (limit "
                + "\(EngineLimits.derivationRounds)); encrypt the key again with fewer", .clientCertificateUnreadable)
    }

    /// Returns a BIO that reads `bytes`, which must outlive it.
    private static func input(_ bytes: Secret) throws(TransferFailure) -> OpaquePointer {
        let input = bytes.withUnsafeBytes { BIO_new_mem_buf($0.baseAddress, Int32(clamping: $0.count)) }
        guard let input else { throw TransferFailure(.outOfMemory, "out of memory for a client certificate") }
        return input
    }

    static var wrongPassphrase: TransferFailure {
        failure("wrong or missing passphrase or PIN for the key of the client certificate", .clientKeyPassphraseWrong)
    }

    private static var changed: TransferFailure {
        failure(
            "the client certificate differs from the one accepted for this session: its file or token was replaced",
            .clientCertificateChanged)
    }

    static func failure(_ text: String, _ cause: TransferFailure.Cause) -> TransferFailure {
        TransferFailure(.tlsFailed, text, cause: cause)
    }
}

/// `pem_password_cb`, which Swift imports without its calling convention.
private typealias PassphraseFunction =
    @convention(c) (
        UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?
    ) -> Int32

/// Supplies the passphrase that OpenSSL asks for. Without a callback OpenSSL would prompt at the terminal.
private final class Passphrase {
    private let secret: Secret?
    private(set) var wasAsked = false

    init(_ secret: Secret?) { self.secret = secret }

    func lend<Value>(_ body: (PassphraseFunction, UnsafeMutableRawPointer) -> Value) -> Value {
        withExtendedLifetime(self) {
            body(
                { buffer, size, _, user in
                    guard let buffer, let user else { return -1 }
                    let destination = UnsafeMutableRawBufferPointer(start: buffer, count: Int(size))
                    return Unmanaged<Passphrase>.fromOpaque(user).takeUnretainedValue().answer(destination)
                }, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    private func answer(_ buffer: UnsafeMutableRawBufferPointer) -> Int32 {
        wasAsked = true
        guard let secret, secret.count <= buffer.count else { return -1 }
        secret.withUnsafeBytes { buffer.copyMemory(from: $0) }
        return Int32(secret.count)
    }
}
