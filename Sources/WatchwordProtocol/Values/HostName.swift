internal import Glibc

/// Canonical host names and addresses. Comparisons use this form, so that another spelling of a host does not evade a rule.
package enum HostName {
    /// Returns a name in lower case without its final dot, or an address in the form of `inet_ntop(3)`, with brackets for IPv6.
    /// An IPv4-mapped IPv6 address becomes the IPv4 address. Returns `nil` if `text` is not a host.
    package static func canonical(_ text: some StringProtocol) -> String? {
        let lowercased = text.asciiLowercased
        let bytes = lowercased.utf8
        // Not by characters: one may consist of a bracket or a dot and a mark, which would be dropped with it.
        if bytes.first == bracket {
            return bytes.last == UInt8(ascii: "]")
                ? ipv6(String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self)) : nil
        }
        let name = bytes.last == dot ? String(decoding: bytes.dropLast(), as: UTF8.self) : lowercased
        return (isAddress(name) ? isIPv4(name) : isName(name)) ? name : nil
    }

    /// Whether `name` is an IPv6 address in brackets, or resolvers treat it as an IPv4 address, well-formed or not.
    package static func isAddress(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { bytes in
            if bytes.first == bracket { return true }
            guard let last = bytes.split(separator: dot).last else { return false }
            return last.starts(with: "0x".utf8) || last.allSatisfy { (0x30...0x39).contains($0) }
        }
    }

    private static func isName(_ name: String) -> Bool {
        guard (1...253).contains(name.utf8.count) else { return false }
        var label = 0
        for byte in name.utf8 {
            switch byte {
            case dot where label > 0: label = 0
            case 0x61...0x7A, 0x30...0x39, 0x2D, 0x5F: label += 1
            default: return false
            }
            guard label <= 63 else { return false }
        }
        return label > 0
    }

    private static let dot = UInt8(ascii: ".")
    private static let bracket = UInt8(ascii: "[")

    /// Whether `text` is an IPv4 address in its usual form: four decimal numbers without leading zeros.
    package static func isIPv4(_ text: String) -> Bool {
        var address = in_addr()
        // A NUL byte would end the string for the C function, which would ignore the rest.
        return !text.utf8.contains(0) && inet_pton(AF_INET, text, &address) == 1
    }

    private static func ipv6(_ text: String) -> String? {
        guard text.contains(":"), !text.contains("%"), !text.hasPrefix("["), let address = NetworkAddress(text) else {
            return nil
        }
        return address.bytes.count == 4 ? address.description : "[\(address)]"
    }
}

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

public enum Loopback {
    /// Whether the host is this machine (RFC 6761 section 6.3, RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3).
    public static func isLoopback(_ host: ExactText) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
    }
}
