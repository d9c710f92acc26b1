import WatchwordProtocol

/// The environment variables by which programs find a proxy.
enum ProxyEnvironment {
    /// The variables that most programs read, in both spellings: some read only one.
    private static let names = ["http_proxy", "https_proxy", "all_proxy"]

    /// Returns an environment whose programs use a proxy. The other variables, such as `no_proxy`, do not change.
    /// - Parameters:
    ///   - environment: entries of the form `NAME=VALUE`.
    ///   - proxy: the URL of the proxy, with its token.
    ///   - listen: the address of the proxy, `HOST:PORT`.
    static func added(to environment: [String], proxy: String, _ listen: String) -> [String] {
        var added = names.flatMap { [($0, proxy), (uppercased($0), proxy)] }
        // Node's own fetch reads the variables only if it is told to.
        added.append(("NODE_USE_ENV_PROXY", "1"))
        // Java reads none of them. It cannot send the token, but the broker recognizes descendants without it.
        let java = "JAVA_TOOL_OPTIONS"
        let options = environment.first { $0.hasPrefix("\(java)=") }.map {
            String($0.dropFirst(java.utf8.count + 1)) + " "
        }
        let (host, port) = split(listen)
        let properties = ["http", "https"].map { "-D\($0).proxyHost=\(host) -D\($0).proxyPort=\(port)" }
        added.append((java, (options ?? "") + properties.joined(separator: " ")))
        let replaced = Set(added.map(\.0))
        return environment.filter { !replaced.contains(String($0.prefix { $0 != "=" })) } + added.map { "\($0)=\($1)" }
    }

    private static func uppercased(_ name: String) -> String {
        String(decoding: name.utf8.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }, as: UTF8.self)
    }

    private static func split(_ address: String) -> (host: Substring, port: Substring) {
        let colon = address.lastIndex(of: ":") ?? address.endIndex
        return (address[..<colon], address[colon...].dropFirst())
    }
}
