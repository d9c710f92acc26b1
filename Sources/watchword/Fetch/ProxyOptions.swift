import ArgumentParser
import WatchwordProtocol

/// The proxy options. Without them, the broker uses its configured proxy.
struct ProxyOptions: ParsableArguments {
    @Option(
        name: [.customShort("x"), .long],
        help: ArgumentHelp(
            "Use this proxy (http, https or socks5h; default port 1080, or 443 for https). An empty URL means none.",
            valueName: "[scheme://][user:password@]host[:port]"))
    var proxy: String?

    @Option(
        name: [.customShort("U"), .long],
        help: ArgumentHelp(
            "The user and password for the proxy of -x; prompts for a missing password.", valueName: "user[:password]"))
    var proxyUser: String?

    @Option(
        help: ArgumentHelp("Use no proxy, not even the configured one. Only '*' is accepted.", valueName: "*"))
    var noproxy: String?

    func validate() throws {
        if let noproxy, noproxy != "*" {
            throw ValidationError(
                "--noproxy takes only '*'; list hosts to reach without a proxy in the configuration (proxy.except)"
            )
        }
        if proxyUser != nil && proxy == nil {
            throw ValidationError("-U requires -x; for the configured proxy, wait for the prompt")
        }
    }

    func choice(_ taken: SecretArguments.Taken, interrupt: Int32) throws -> ProxyChoice {
        if noproxy != nil { return .none }
        guard let text = taken[.proxy] else { return .configured }
        guard !text.isEmpty else { return .none }
        let (url, userInfo) = URLText.split(Self.withScheme(text))
        var named = NamedProxy(url: url, userInfo: userInfo)
        if let user = taken[.proxyUser] {
            // The credential for a proxy of the command line is used for this fetch only.
            named.credential = try CommandLineCredential.make(
                user, option: "-U", persistence: .none, interrupt: interrupt)
            named.userInfo = nil
        }
        return .named(named)
    }

    /// Adds `http://` to a proxy without a scheme, as curl does.
    static func withScheme(_ text: Secret) -> Secret {
        let hasScheme = text.withUnsafeBytes { $0.firstRange(of: "://".utf8) != nil }
        return hasScheme ? text : Secret(joining: [.text("http://"), .secret(text)])
    }
}
