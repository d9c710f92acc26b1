internal import Glibc

/// An IPv4 or IPv6 address in the canonical form used for comparisons.
///
/// The zone (`fe80::1%eth0`) is dropped: a rule for an address applies on every interface.
public struct NetworkAddress: Sendable, Hashable {
    /// The address in network byte order: 4 or 16 bytes. An IPv4-mapped IPv6 address has 4.
    public let bytes: [UInt8]

    /// Returns `nil` unless `bytes` are 4 or 16 bytes, in network byte order.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes.starts(with: Self.mappedPrefix) ? Array(bytes[12...]) : bytes
    }

    /// Parses an address, with or without brackets and zone. Returns `nil` for a name.
    public init?(_ text: String) {
        var inner = Substring(text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text)
        if let zone = inner.firstIndex(of: "%") { inner = inner[..<zone] }
        // A NUL byte would end the string for the C function.
        guard inner.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        var (short, long) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, String(inner), &short) == 1 {
            self.init(bytes: withUnsafeBytes(of: short) { Array($0) })
        } else if inet_pton(AF_INET6, String(inner), &long) == 1 {
            self.init(bytes: withUnsafeBytes(of: long) { Array($0) })
        } else {
            return nil
        }
    }

    /// Returns the address of a URL's host that is known without a resolver: the address itself, or 127.0.0.1 for `localhost`
    /// and its subdomains (RFC 6761 section 6.3). Returns `nil` for any other name.
    package init?(host: String) {
        guard let host = HostName.canonical(host) else { return nil }
        self.init(host == "localhost" || host.hasSuffix(".localhost") ? "127.0.0.1" : host)
    }

    /// This address, and the IPv4 address embedded in it, if any: IPv4-compatible (RFC 4291 section 2.5.5.1), NAT64 (RFC 6052
    /// section 2.1), 6to4 (RFC 3056).
    package var reached: [NetworkAddress] {
        guard bytes.count == 16 else { return [self] }
        let embedded: ArraySlice<UInt8>? =
            if bytes.starts(with: Self.nat64Prefix) {
                bytes[12...]
            } else if bytes.starts(with: [0x20, 0x02]) {
                bytes[2..<6]
            } else if bytes[..<12].allSatisfy({ $0 == 0 }), bytes[12...].contains(where: { $0 > 1 }) {
                bytes[12...]
            } else {
                nil
            }
        return [self] + (embedded.flatMap { NetworkAddress(bytes: Array($0)) }.map { [$0] } ?? [])
    }

    /// Whether this is a loopback address, or the unspecified address, which Linux also connects to the local machine.
    package var isThisMachine: Bool {
        bytes.count == 4 ? bytes[0] == 127 || bytes[0] == 0 : bytes[..<15].allSatisfy { $0 == 0 } && bytes[15] <= 1
    }

    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    private static let nat64Prefix: [UInt8] = [0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// A range of addresses with a common prefix, such as `10.0.0.0/8`.
package struct NetworkRange: Sendable, Hashable {
    private let first: NetworkAddress
    /// The length of the prefix in bits.
    private let prefix: Int

    /// Parses a range; an IPv6 address may be in brackets. Returns `nil` for any other text.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let prefix = Int(parts[1]), let address = NetworkAddress(String(parts[0])),
            prefix <= 8 * address.bytes.count
        else { return nil }
        self.prefix = prefix
        let bytes = address.bytes.indices.map { address.bytes[$0] & Self.mask(of: $0, prefix) }
        guard let first = NetworkAddress(bytes: bytes) else { return nil }
        self.first = first
    }

    package func contains(_ address: NetworkAddress) -> Bool {
        address.bytes.count == first.bytes.count
            && first.bytes.indices.allSatisfy { address.bytes[$0] & Self.mask(of: $0, prefix) == first.bytes[$0] }
    }

    private static func mask(of byte: Int, _ prefix: Int) -> UInt8 {
        ~UInt8(truncatingIfNeeded: 0xFF >> min(max(prefix - 8 * byte, 0), 8))
    }
}

extension NetworkRange: CustomStringConvertible {
    package var description: String { "\(first)/\(prefix)" }
}

extension NetworkAddress: CustomStringConvertible {
    /// The address in the form of `inet_ntop(3)`, without brackets.
    public var description: String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, bytes, &buffer, socklen_t(buffer.count)) != nil else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
