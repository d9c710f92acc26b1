internal import COpenSSL
internal import Synchronization
internal import WatchwordCore
internal import WatchwordProtocol

/// An object on a PKCS#11 token (RFC 7512).
struct TokenURI {
    private static let defaultModule = "p11-kit-proxy.so"

    /// Without `type` and without the query.
    private let path: String
    /// Which token it is on.
    private let token: String
    private let module: String

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    init(_ uri: String) throws(TransferFailure) {
        let parts = uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts[0].hasPrefix("pkcs11:"), !uri.utf8.contains(0) else { throw Self.unreadable("It is no such URI.") }
        let attributes = parts[0].dropFirst("pkcs11:".count).split(separator: ";")
        let chosen = attributes.filter { $0.hasPrefix("token=") || $0.hasPrefix("serial=") }
        guard !chosen.isEmpty else { throw Self.unreadable("It names no token.") }
        guard !attributes.contains(where: { $0.hasPrefix("pin-") }) else { throw Self.unreadable("It holds a PIN.") }
        let query = parts.count > 1 ? parts[1].split(separator: "&") : []
        var module = Self.defaultModule
        for attribute in query {
            guard attribute.hasPrefix("module-path="), let path = Self.decoded(attribute.dropFirst(12)),
                path.hasPrefix("/")
            else { throw Self.unreadable("Only module-path may follow the question mark, with a whole path.") }
            module = path
        }
        self.path = "pkcs11:" + attributes.filter { !$0.hasPrefix("type=") }.joined(separator: ";")
        token = chosen.sorted().joined(separator: ";")
        self.module = module
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable`.
    func certificate() throws(TransferFailure) -> OpaquePointer {
        try TokenModules.use(module) { (engine, _) throws(TransferFailure) in
            guard let certificate = watchword_token_certificate(engine, "\(path);type=cert") else {
                throw Self.unreadable("There is no certificate, or no such token.")
            }
            return certificate
        }
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable` or `clientKeyPassphraseWrong`.
    func key(_ pin: Secret?) throws(TransferFailure) -> OpaquePointer {
        // Without a PIN the engine would ask for one at the terminal.
        guard let pin, !pin.isEmpty else { throw LoadedCertificate.wrongPassphrase }
        return try TokenModules.use(module) { (engine, pins) throws(TransferFailure) in
            let known = pins[token]
            // A module is logged in once, and would take every other PIN from then on.
            if let right = known?.right, right != pin { throw LoadedCertificate.wrongPassphrase }
            if let wrong = known?.wrong, wrong == pin { throw LoadedCertificate.wrongPassphrase }
            let key = try pin.withTerminatedBytes { text throws(TransferFailure) in
                watchword_token_key(engine, "\(path);type=private", text)
            }
            if let key {
                pins[token] = TokenModules.Pins(right: pin)
                return key
            }
            guard Self.isPINRefused else { throw Self.unreadable("There is no private key.") }
            pins[token] = TokenModules.Pins(wrong: pin)
            throw LoadedCertificate.wrongPassphrase
        }
    }

    /// One of CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE, CKR_PIN_EXPIRED, CKR_PIN_LOCKED is in OpenSSL's queue.
    private static var isPINRefused: Bool {
        var isRefused = false
        while case let error = ERR_get_error(), error != 0 {
            if error & 0x8000_0000 == 0, (0xA0...0xA4).contains(error & 0x7F_FFFF) { isRefused = true }
        }
        return isRefused
    }

    private static func unreadable(_ reason: String) -> TransferFailure {
        LoadedCertificate.failure(
            "The token's URI gives no client certificate. \(reason)", .clientCertificateUnreadable)
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(Substring(rest.prefix(2))), radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// The PKCS#11 modules of the process. They stay: whoever closes one logs all its users out.
enum TokenModules {
    /// What is known of one token's PIN, by this process.
    struct Pins {
        var right: Secret?
        var wrong: Secret?
    }

    /// `@unchecked Sendable`: an engine lives as long as the process, and is used only under the lock below.
    private struct Module: @unchecked Sendable {
        // An `ENGINE`.
        let engine: OpaquePointer
        var pins: [String: Pins] = [:]
    }

    /// Only one thread talks to tokens at a time.
    private static let modules = Mutex<[String: Module]>([:])

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable` when the module cannot be loaded.
    static func use<Value>(
        _ path: String, _ body: (OpaquePointer, inout [String: Pins]) throws(TransferFailure) -> Value
    ) throws(TransferFailure) -> Value {
        ERR_clear_error()
        defer { ERR_clear_error() }
        var outcome = Result<Value, TransferFailure>.failure(
            LoadedCertificate.failure(
                "The PKCS#11 module \(path.shortened) cannot be loaded. Check that it is installed, and with it "
                    + "libengine-pkcs11-openssl.", .clientCertificateUnreadable))
        modules.withLock { modules in
            guard var module = modules[path] ?? watchword_token_engine(path).map({ Module(engine: $0) }) else { return }
            outcome = Result { () throws(TransferFailure) in try body(module.engine, &module.pins) }
            modules[path] = module
        }
        return try outcome.get()
    }
}
