internal import Glibc

/// Canonical host names and addresses. Comparisons use this form, so that another spelling of a host does not evade a rule.
package enum HostName {
    /// Returns a name in lower case without its final dot, or an address in the form of `inet_ntop(3)`, with brackets for IPv6.
    /// An IPv4-mapped IPv6 address becomes the IPv4 address. Returns `nil` if `text` is not a host.
    package static func canonical(_ text: some StringProtocol) -> String? {
        let lowercased = text.asciiLowercased
        if lowercased.hasPrefix("[") {
            return lowercased.hasSuffix("]") ? ipv6(String(lowercased.dropFirst().dropLast())) : nil
        }
        let name = lowercased.hasSuffix(".") ? String(lowercased.dropLast()) : lowercased
        return (isAddress(name) ? isIPv4(name) : isName(name)) ? name : nil
    }

    /// Whether `name` is an IPv6 address in brackets, or resolvers treat it as an IPv4 address, well-formed or not.
    package static func isAddress(_ name: String) -> Bool {
        if name.hasPrefix("[") { return true }
        guard let last = name.split(separator: ".").last else { return false }
        return last.hasPrefix("0x") || last.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isName(_ name: String) -> Bool {
        guard !name.isEmpty, name.utf8.count <= 253 else { return false }
        return name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D || byte == 0x5F
                }
        }
    }

    /// Whether `text` is an IPv4 address in its usual form: four decimal numbers without leading zeros.
    package static func isIPv4(_ text: String) -> Bool {
        var address = in_addr()
        return isPlain(text) && inet_pton(AF_INET, text, &address) == 1
    }

    private static func ipv6(_ text: String) -> String? {
        var address = in6_addr()
        guard isPlain(text), inet_pton(AF_INET6, text, &address) == 1 else { return nil }
        let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        let mapped = withUnsafeBytes(of: address) { bytes in
            bytes.starts(with: mappedPrefix) ? dotted(bytes[12...]) : nil
        }
        if let mapped { return mapped }
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, &address, &buffer, socklen_t(buffer.count)) != nil else { return nil }
        let length = buffer.firstIndex(of: 0) ?? buffer.count
        return "[\(String(decoding: buffer[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self))]"
    }

    private static func dotted(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { String($0) }.joined(separator: ".")
    }

    /// Whether `text` is printable ASCII. A NUL byte would end the string for the C function, which would ignore the rest.
    private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
