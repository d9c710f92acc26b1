internal import WatchwordProtocol

/// The address of a proxy: `http://host:port` and nothing else.
enum ProxyURL {
    /// The canonical form. What is refused is never quoted: it may hold a password in any place.
    static func canonical(_ text: String) throws(Refusal) -> String {
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw Refusal(
                "This URL holds a user or a password, and a password does not belong in this file. Take out what stands "
                    + "between // and @, and the @ too.")
        }
        let scheme = "http://"
        guard text.prefix(scheme.count).lowercased() == scheme else {
            throw Refusal("This is not the URL of a proxy that is spoken to over HTTP. \(form)")
        }
        let authority = text.dropFirst(scheme.count)
        guard !authority.contains(where: { "/?#".contains($0) }) else {
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

    private static let form = "Write \"http://host:port\", for example \"http://proxy.example.com:3128\"."
}
