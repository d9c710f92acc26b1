/// A pattern for hosts: `example.com` matches that host, `*.example.com` all its subdomains but not the host itself,
/// `.example.com` both. With `:port` the pattern matches that port only, otherwise every port. Where networks are allowed,
/// `10.0.0.0/8` and `fd00::/8` match the addresses in them, if the URL has an address as its host.
public struct HostPattern: Sendable, Hashable {
    private enum Scope: String {
        case host = ""
        case below = "*."
        case domain = "."
    }

    private let scope: Scope
    private let name: String
    /// The port; `nil` for every port.
    package let port: Int?
    private let network: NetworkRange?

    /// Parses a pattern. Letter case and the spelling of an address do not matter.
    public init(_ text: String, allowsNetworks: Bool = false) throws(Refusal) {
        do throws(Refusal) {
            try self.init(parsing: text, allowsNetworks)
        } catch {
            throw Refusal(
                "\(Self.shown(text)) is not a host pattern: \(error.text); "
                    + "write example.com, *.example.com, .example.com or [2001:db8::1], each with :port or without"
                    + (allowsNetworks ? "; or a network, 10.0.0.0/8 or fd00::/8" : ""))
        }
    }

    private init(parsing text: String, _ allowsNetworks: Bool) throws(Refusal) {
        if allowsNetworks, text.contains("/"), !text.contains("://") {
            guard let network = NetworkRange(text) else {
                throw Refusal("a network is an address and the length of its prefix in bits, without a port")
            }
            (scope, name, port, self.network) = (.host, "\(network)", nil, network)
            return
        }
        guard !text.isEmpty else { throw Refusal("it is empty") }
        guard !text.utf8.contains(UInt8(ascii: "@")) else { throw Refusal("remove user and password") }
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { throw Refusal("use the ASCII form (punycode: xn--...)") }
        guard !text.contains("://") else { throw Refusal("omit http:// or https://") }
        guard !text.contains("/") else { throw Refusal("paths and ranges of addresses are not supported") }
        let parts = try HostPort(text[...])
        let scope: Scope = parts.host.hasPrefix("*.") ? .below : parts.host.hasPrefix(".") ? .domain : .host
        let host = parts.host.dropFirst(scope.rawValue.count)
        guard !host.contains("*") else { throw Refusal("a star is allowed only at the beginning, before a dot") }
        guard let name = HostName.canonical(host) else { throw Refusal("it is not a valid host") }
        guard scope == .host || !HostName.isAddress(name) else { throw Refusal("IP addresses have no subdomains") }
        (self.scope, self.name, port, network) = (scope, name, parts.port, nil)
    }

    /// Returns the text for an error. A text with `@` is not quoted, because it may contain a password.
    private static func shown(_ text: String) -> String {
        text.utf8.contains(UInt8(ascii: "@")) ? "This text" : "\"\(text.shortened)\""
    }

    /// The address, if the pattern matches a single one; 127.0.0.1 for `localhost`.
    package var address: NetworkAddress? {
        let isAddress = scope == .host && HostName.isAddress(name) || scope != .below && name == "localhost"
        return isAddress ? NetworkAddress(host: name) : nil
    }

    /// Whether the pattern matches `host`, a name or an address (IPv6 in brackets), at `port`.
    public func matches(host: ExactText, port: Int) -> Bool {
        guard self.port == nil || self.port == port, let host = HostName.canonical(host.string) else { return false }
        if let network { return NetworkAddress(host).map(network.contains) ?? false }
        return switch scope {
        case .host: host == name
        case .below: host.hasSuffix(".\(name)")
        case .domain: host == name || host.hasSuffix(".\(name)")
        }
    }
}

extension HostPattern: CustomStringConvertible {
    /// The pattern in its canonical form.
    public var description: String { "\(scope.rawValue)\(name)\(port.map { ":\($0)" } ?? "")" }
}
