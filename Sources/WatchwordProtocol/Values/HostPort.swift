/// `host` or `host:port`, taken apart but not judged beyond the port.
package struct HostPort {
    /// With brackets where there are some.
    package let host: Substring
    /// From 1 to 65,535.
    package let port: Int?

    /// - Throws: a sentence that does not quote the text: it may be a password in the wrong place.
    package init(_ text: Substring) throws(Refusal) {
        var (host, portText) = (text, Substring?.none)
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else {
                throw Refusal("The bracket of the address is not closed.")
            }
            let rest = text[text.index(after: bracket)...]
            host = text[...bracket]
            guard rest.isEmpty || rest.hasPrefix(":") else {
                throw Refusal("After an address in brackets comes only a colon and a port.")
            }
            portText = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = text.firstIndex(of: ":") {
            (host, portText) = (text[..<colon], text[text.index(after: colon)...])
            guard portText?.contains(":") == false else {
                throw Refusal("An IPv6 address stands in brackets, as in [2001:db8::1].")
            }
        }
        self.host = host
        port = try portText.map(Self.port)
    }

    private static func port(_ text: Substring) throws(Refusal) -> Int {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
            (1...65_535).contains(number)
        else { throw Refusal("The port has to be a number from 1 to 65535.") }
        return number
    }
}

/// Why a value is not taken, in whole sentences.
package struct Refusal: Error {
    package let text: String

    package init(_ text: String) { self.text = text }
}
