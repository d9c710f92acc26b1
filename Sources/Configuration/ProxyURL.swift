internal import WatchwordProtocol

/// Parses the URL of a proxy: a scheme, a host and a port. A path is ignored.
enum ProxyURL {
    /// Returns the canonical form. Error messages never quote the text, which may contain a password in any place.
    /// - Throws: `Refusal`, whose text says what to write instead.
    static func canonical(_ text: String) throws(Refusal) -> String {
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw Refusal(
                "this URL contains a user name or a password, which do not belong in this file; remove the "
                    + "text between // and @, and the @")
        }
        guard let (scheme, rest) = divide(text) else { throw Refusal("not a proxy URL; \(form)") }
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains(where: { "?#".contains($0) }) else {
            throw Refusal("remove the query or the fragment after the host and the port; \(form)")
        }
        do throws(Refusal) {
            let parts = try HostPort(authority)
            guard let host = HostName.canonical(parts.host) else {
                throw Refusal("this URL has no valid host")
            }
            guard let port = parts.port else { throw Refusal("this URL has no port") }
            return "\(scheme)\(host):\(port)"
        } catch {
            throw Refusal("\(error.text); \(form)")
        }
    }

    /// Splits off the scheme; `nil` for an unsupported one. `socks5` means `socks5h`: a SOCKS proxy always resolves the host
    /// names.
    private static func divide(_ text: String) -> (scheme: String, rest: Substring)? {
        let schemes = [
            ("http://", "http://"), ("https://", "https://"), ("socks5h://", "socks5h://"), ("socks5://", "socks5h://"),
        ]
        let found = schemes.first { text.prefix($0.0.count).lowercased() == $0.0 }
        return found.map { ($0.1, text.dropFirst($0.0.count)) }
    }

    private static let form =
        "write http://, https:// or socks5h:// with a host and a port, for example \"http://proxy.example.com:3128\""
}
