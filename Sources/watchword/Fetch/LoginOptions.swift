import ArgumentParser
import JSONText
import WatchwordProtocol

/// The login options.
struct LoginOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The user and password for the server; prompts for a missing password.", valueName: "user[:password]"))
    var user: String?

    @Option(
        name: .customLong("oauth2-bearer"),
        help: ArgumentHelp("A bearer token; sent only over https or to this machine.", valueName: "token"))
    var bearerToken: String?

    @Flag(help: "Allow any scheme, strongest first; the default without the next four options.")
    var anyauth = false

    @Flag(help: "Allow Basic, plus other selected schemes, for servers; a proxy may use any.")
    var basic = false

    @Flag(help: "Allow Digest, plus other selected schemes.")
    var digest = false

    @Flag(help: "Allow NTLM, plus other selected schemes; only for hosts that the configuration lists for it.")
    var ntlm = false

    @Flag(help: "Allow Negotiate, plus other selected schemes; only for hosts that the configuration lists for it.")
    var negotiate = false

    @Option(
        help:
            """
            Where to store a login from the prompt or from -u, once the server has accepted it. If it cannot be stored in the \
            keyring, the exit code is 120.
            """)
    var keep = LoginStorage.session

    func validate() throws {
        if user != nil && bearerToken != nil { throw ValidationError("use -u or --oauth2-bearer, not both") }
    }

    /// The selected schemes; `nil` for all.
    var methods: [AuthenticationMethod]? {
        let named: [(Bool, AuthenticationMethod)] = [
            (basic, .httpBasic), (digest, .httpDigest), (ntlm, .ntlm), (negotiate, .negotiate),
            // --oauth2-bearer implies its scheme.
            (bearerToken != nil, .bearer),
        ]
        guard !anyauth, basic || digest || ntlm || negotiate else { return nil }
        return named.filter(\.0).map(\.1)
    }

    func credential(_ taken: SecretArguments.Taken, interrupt: Int32) throws -> LoginCredential? {
        if let user = taken[.user] {
            return try CommandLineCredential.make(
                user, option: "-u", persistence: keep.persistence, interrupt: interrupt)
        }
        return taken[.bearerToken].map { LoginCredential(form: .token, secret: $0, persistence: keep.persistence) }
    }
}

/// The value of `--keep`: how long to store a credential.
enum LoginStorage: String, ExpressibleByArgument, CaseIterable {
    case none, session, keyring

    var persistence: Persistence {
        switch self {
        case .none: .none
        case .session: .forSession
        case .keyring: .permanent
        }
    }

    /// Returns the persistence that `challenge` allows, with a note for the user if it is shorter than requested.
    func granted(by challenge: JSON) -> (persistence: Persistence, note: String?) {
        guard let names = challenge["persistenceAllowed"]?.elements else { return (persistence, nil) }
        let allowed = names.compactMap { $0.string.flatMap(Persistence.init(rawValue:)) }
        if allowed.contains(persistence) { return (persistence, nil) }
        guard allowed.contains(.forSession) else {
            return (.none, "\(Self.reason(in: challenge)); the login you type is used for this fetch only.")
        }
        return (
            .forSession,
            "The keyring cannot be used (see: watchword keyring status); the login you type is stored for this session only."
        )
    }

    /// Returns why the answer to `challenge` is not stored.
    private static func reason(in challenge: JSON) -> String {
        if challenge["certificateException"] != nil { return "Logins for a server that is not verified are not stored" }
        if challenge["namedProxy"] != nil { return "Logins through a proxy that the program names are not stored" }
        return "Logins cannot be stored now (see: watchword status)"
    }
}
