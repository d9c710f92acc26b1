internal import COpenSSL
internal import Synchronization
internal import WatchwordCore
internal import WatchwordProtocol

/// A PKCS#11 module, loaded once in the process. It is never closed, because that would log out all its users.
final class TokenModule: Sendable {
    /// The PINs of a token that this process knows to be right or wrong.
    struct Pins {
        /// All tokens that the name matched when the PIN was tried.
        let tokens: Set<PresentToken.Identity>
        var right: Secret?
        var wrong: Secret?
    }

    /// `@unchecked Sendable`: an engine lives as long as the process, and is used only with its module's lock held.
    private struct State: @unchecked Sendable {
        // An `ENGINE`.
        var engine: OpaquePointer?
        var functions: UnsafePointer<watchword_token_module>?
        var tokens = Tokens()
    }

    /// The state of the tokens of a module.
    struct Tokens {
        /// The tokens that are plugged in.
        private(set) var present: [PresentToken] = []
        var pins: [TokenName: Pins] = [:]
        var tries: [PresentToken.Identity: PINTries] = [:]

        func meant(by name: TokenName) -> [PresentToken] { present.filter { $0.isNamed(by: name) } }

        /// Updates the tokens that are plugged in, and drops the PINs of names that now match other tokens: another token has
        /// its own PIN and try counter.
        mutating func record(_ present: [PresentToken]) {
            self.present = present
            pins = pins.filter { name, known in Set(meant(by: name).map(\.identity)) == known.tokens }
        }
    }

    /// The module of p11-kit, which gives access to all modules configured on the machine.
    static let standard = "p11-kit-proxy.so"

    private static let modules = Mutex<[String: TokenModule]>([:])
    private let path: String
    /// Only one thread at a time uses the tokens of a module. A token that hangs does not block the other modules.
    private let state = Mutex(State())

    private init(_ path: String) { self.path = path }

    /// Returns the module at `path`, shared by all its users.
    static func at(_ path: String) -> TokenModule {
        modules.withLock { modules in
            if let module = modules[path] { return module }
            let module = TokenModule(path)
            modules[path] = module
            return module
        }
    }

    /// Runs `body` with the module's lock held.
    /// - Throws: `TransferFailure` with cause `clientCertificateUnreadable` if the module cannot be loaded.
    func use<Value>(
        _ body: (OpaquePointer, inout Tokens) throws(TransferFailure) -> Value
    ) throws(TransferFailure) -> Value {
        ERR_clear_error()
        defer { ERR_clear_error() }
        var outcome = Result<Value, TransferFailure>.failure(
            LoadedCertificate.failure(
                "cannot load the PKCS#11 module \(path.shortened); check that it and libengine-pkcs11-openssl are "
                    + "installed", .clientCertificateUnreadable))
        state.withLock { state in
            if state.engine == nil { state.engine = watchword_token_engine(path) }
            if state.functions == nil { state.functions = watchword_token_module_at(path) }
            guard let engine = state.engine, let functions = state.functions else { return }
            state.tokens.record(PresentToken.all(of: functions))
            outcome = Result { () throws(TransferFailure) in try body(engine, &state.tokens) }
        }
        return try outcome.get()
    }
}
