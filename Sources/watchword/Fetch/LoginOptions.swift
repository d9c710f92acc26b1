import ArgumentParser
import WatchwordProtocol

/// How to log in.
struct LoginOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("User and password; without password it is asked for.", valueName: "user[:password]"))
    var user: String?

    @Option(
        name: .customLong("oauth2-bearer"),
        help: ArgumentHelp("A token of the Bearer scheme. It is sent over https only.", valueName: "token"))
    var bearerToken: String?

    @Flag(help: "Use any scheme, the strongest first. That is so unless one of the next four is given.")
    var anyauth = false

    @Flag(help: "Use Basic, and what else is named, with the server and with a proxy.")
    var basic = false

    @Flag(help: "Use Digest, and what else is named.")
    var digest = false

    @Flag(help: "Use NTLM, and what else is named; only with hosts that the configuration names for it.")
    var ntlm = false

    @Flag(help: "Use Negotiate, and what else is named; only with hosts that the configuration names for it.")
    var negotiate = false

    @Option(help: "Where to keep what is typed, or given with -u, once the server has accepted it.")
    var keep = Keep.session

    func validate() throws {
        if user != nil && bearerToken != nil { throw ValidationError("Give -u or --oauth2-bearer, not both.") }
    }

    /// `nil` for all schemes.
    var methods: [AuthenticationMethod]? {
        let named: [(Bool, AuthenticationMethod)] = [
            (basic, .httpBasic), (digest, .httpDigest), (ntlm, .ntlm), (negotiate, .negotiate),
            // Whoever gives a token means it.
            (bearerToken != nil, .bearer),
        ]
        guard !anyauth, basic || digest || ntlm || negotiate else { return nil }
        return named.filter(\.0).map(\.1)
    }

    func credential(_ taken: SecretArguments.Taken, interrupt: Int32) throws -> LoginCredential? {
        if let user = taken[.user] {
            return try CommandLineCredential.make(user, option: "-u", keep: keep.persistence, interrupt: interrupt)
        }
        return taken[.bearerToken].map { LoginCredential(form: .token, secret: $0, persistence: keep.persistence) }
    }
}
