internal import COpenSSL
internal import Synchronization
internal import WatchwordCore
internal import WatchwordProtocol

/// A PKCS#11 module of the process. It stays: whoever closes one logs all its users out.
final class TokenModule: Sendable {
    /// What is known of one token's PIN, by this process.
    struct Pins {
        /// All that had the name of the token when the PIN was tried.
        let tokens: Set<PresentToken.Identity>
        var right: Secret?
        var wrong: Secret?
    }

    /// `@unchecked Sendable`: an engine lives as long as the process, and is used only under its module's lock.
    private struct State: @unchecked Sendable {
        // An `ENGINE`.
        var engine: OpaquePointer?
        var functions: UnsafePointer<watchword_token_module>?
        var tokens = Tokens()
    }

    /// What is known of the tokens of a module.
    struct Tokens {
        /// The tokens that are there now.
        private(set) var present: [PresentToken] = []
        var pins: [TokenName: Pins] = [:]
        var tries: [PresentToken.Identity: PINTries] = [:]

        func meant(by name: TokenName) -> [PresentToken] { present.filter { $0.isMeant(by: name) } }

        /// What was learned about a name holds while it means the same tokens: another token of that name has a PIN of its own,
        /// and tries that count.
        mutating func note(_ present: [PresentToken]) {
            self.present = present
            pins = pins.filter { name, known in Set(meant(by: name).map(\.identity)) == known.tokens }
        }
    }

    /// That of p11-kit, which leads to all that the machine is configured for.
    static let standard = "p11-kit-proxy.so"

    private static let modules = Mutex<[String: TokenModule]>([:])
    private let path: String
    /// Only one thread talks to the tokens of a module at a time; who hangs in it holds up nobody of another one.
    private let state = Mutex(State())

    private init(_ path: String) { self.path = path }

    /// The one for all who use it.
    static func at(_ path: String) -> TokenModule {
        modules.withLock { modules in
            if let module = modules[path] { return module }
            let module = TokenModule(path)
            modules[path] = module
            return module
        }
    }

    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable` when the module cannot be loaded.
    func use<Value>(
        _ body: (OpaquePointer, inout Tokens) throws(TransferFailure) -> Value
    ) throws(TransferFailure) -> Value {
        ERR_clear_error()
        defer { ERR_clear_error() }
        var outcome = Result<Value, TransferFailure>.failure(
            LoadedCertificate.failure(
                "The PKCS#11 module \(path.shortened) cannot be loaded. Check that it is installed, and with it "
                    + "libengine-pkcs11-openssl.", .clientCertificateUnreadable))
        state.withLock { state in
            if state.engine == nil { state.engine = watchword_token_engine(path) }
            if state.functions == nil { state.functions = watchword_token_module_at(path) }
            guard let engine = state.engine, let functions = state.functions else { return }
            state.tokens.note(PresentToken.all(of: functions))
            outcome = Result { () throws(TransferFailure) in try body(engine, &state.tokens) }
        }
        return try outcome.get()
    }
}
