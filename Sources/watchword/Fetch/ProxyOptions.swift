import ArgumentParser
import WatchwordProtocol

/// Through which proxy to go. Without these options it is the one that the broker is configured for.
struct ProxyOptions: ParsableArguments {
    @Option(
        name: [.customShort("x"), .long],
        help: ArgumentHelp(
            "Go through this proxy (http, https or socks5h; port 1080, or 443 for https, unless it says another). An empty URL means none.",
            valueName: "[scheme://][user:password@]host[:port]"))
    var proxy: String?

    @Option(
        name: [.customShort("U"), .long],
        help: ArgumentHelp(
            "User and password for the proxy of -x; without password it is asked for.", valueName: "user[:password]"))
    var proxyUser: String?

    @Option(
        help: ArgumentHelp("Only '*' is taken: go through no proxy, also not the configured one.", valueName: "*"))
    var noproxy: String?

    func validate() throws {
        if let noproxy, noproxy != "*" {
            throw ValidationError(
                "--noproxy takes '*' alone. Hosts that are always reached without the proxy are named in the configuration, as proxy.except."
            )
        }
        if proxyUser != nil && proxy == nil {
            throw ValidationError("-U goes with -x. For the configured proxy you are asked when it wants a log-in.")
        }
    }

    func choice(_ taken: SecretArguments.Taken, interrupt: Int32) throws -> ProxyChoice {
        if noproxy != nil { return .none }
        guard let text = taken[.proxy] else { return .configured }
        guard !text.isEmpty else { return .none }
        let (url, userInfo) = URLText.split(Self.withScheme(text))
        var named = NamedProxy(url: url, userInfo: userInfo)
        if let user = taken[.proxyUser] {
            // What a fetch gives to a proxy that it names is good for that fetch.
            named.credential = try CommandLineCredential.make(user, option: "-U", keep: .none, interrupt: interrupt)
            named.userInfo = nil
        }
        return .named(named)
    }

    /// As with curl, a proxy without a scheme is spoken to over HTTP.
    static func withScheme(_ text: Secret) -> Secret {
        text.withUnsafeBytes { bytes in
            if bytes.firstRange(of: "://".utf8) != nil { return text }
            let scheme = Array("http://".utf8)
            return Secret(capacity: scheme.count + bytes.count) { destination in
                destination.copyBytes(from: scheme)
                UnsafeMutableRawBufferPointer(rebasing: destination[scheme.count...]).copyMemory(from: bytes)
                return destination.count
            }
        }
    }
}
