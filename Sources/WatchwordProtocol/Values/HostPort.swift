/// `host` or `host:port`, split. The port is validated, the host is not.
package struct HostPort {
    /// The host, including brackets if there are any.
    package let host: Substring
    /// The port, from 1 to 65,535.
    package let port: Int?

    /// - Throws: `Refusal`, whose text does not quote `text`, because it may be a password in the wrong place.
    package init(_ text: Substring) throws(Refusal) {
        var (host, portText) = (text, Substring?.none)
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else {
                throw Refusal("missing \"]\" after the IPv6 address")
            }
            let rest = text[text.index(after: bracket)...]
            host = text[...bracket]
            guard rest.isEmpty || rest.hasPrefix(":") else {
                throw Refusal("only a colon and a port may follow an address in brackets")
            }
            portText = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = text.firstIndex(of: ":") {
            (host, portText) = (text[..<colon], text[text.index(after: colon)...])
            guard portText?.contains(":") == false else {
                throw Refusal("put an IPv6 address into brackets, as in [2001:db8::1]")
            }
        }
        self.host = host
        port = try portText.map(Self.port)
    }

    private static func port(_ text: Substring) throws(Refusal) -> Int {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
            (1...65_535).contains(number)
        else { throw Refusal("invalid port; use 1 to 65535") }
        return number
    }
}

/// The reason why a value is not accepted, and what to write instead, in complete sentences.
public struct Refusal: Error, Equatable {
    public let text: String

    package init(_ text: String) { self.text = text }
}
