internal import WatchwordProtocol

/// The address of a proxy: what it speaks, its host and its port. A path behind them means nothing.
enum ProxyURL {
    /// The canonical form. What is refused is never quoted: it may hold a password in any place.
    static func canonical(_ text: String) throws(Refusal) -> String {
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw Refusal(
                "This URL holds a user or a password, and a password does not belong in this file. Take out what stands "
                    + "between // and @, and the @ too.")
        }
        guard let (scheme, rest) = divide(text) else { throw Refusal("This is not the URL of a proxy. \(form)") }
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains(where: { "?#".contains($0) }) else {
            throw Refusal("After the host and the port of this URL there is something more. \(form)")
        }
        do throws(Refusal) {
            let parts = try HostPort(authority)
            guard let host = HostName.canonical(parts.host) else {
                throw Refusal("This URL names no host.")
            }
            guard let port = parts.port else { throw Refusal("This URL names no port.") }
            return "\(scheme)\(host):\(port)"
        } catch {
            throw Refusal("\(error.text) \(form)")
        }
    }

    /// `nil` for what proxies do not speak. A SOCKS proxy always resolves the names itself, whichever way it is written.
    private static func divide(_ text: String) -> (scheme: String, rest: Substring)? {
        let schemes = [
            ("http://", "http://"), ("https://", "https://"), ("socks5h://", "socks5h://"), ("socks5://", "socks5h://"),
        ]
        let found = schemes.first { text.prefix($0.0.count).lowercased() == $0.0 }
        return found.map { ($0.1, text.dropFirst($0.0.count)) }
    }

    private static let form =
        "Write http://, https:// or socks5h:// with a host and a port, for example \"http://proxy.example.com:3128\"."
}
