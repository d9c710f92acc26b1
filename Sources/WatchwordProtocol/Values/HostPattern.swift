/// Which hosts are meant: `example.com` is that host, `*.example.com` every host below it but not itself, `.example.com`
/// both. With `:port` only that port is meant, otherwise every port.
public struct HostPattern: Sendable, Hashable {
    /// Why a text is not a pattern, and what to write, in whole sentences.
    public struct Invalid: Error, Equatable {
        /// The sentences.
        public let text: String
    }

    private enum Scope: String {
        case host = ""
        case below = "*."
        case domain = "."
    }

    private let scope: Scope
    private let name: String
    /// `nil` for every port.
    package let port: Int?

    /// Parses a pattern. Small and capital letters are the same, and so are the ways to write an address.
    public init(_ text: String) throws(Invalid) {
        do throws(Refusal) {
            try self.init(parsing: text)
        } catch {
            throw Invalid(
                text: "\(Self.shown(text)) is not a host pattern. \(error.text) "
                    + "Write example.com, *.example.com, .example.com or [2001:db8::1], each with :port or without.")
        }
    }

    private init(parsing text: String) throws(Refusal) {
        guard !text.isEmpty else { throw Refusal("It is empty.") }
        guard !text.utf8.contains(UInt8(ascii: "@")) else { throw Refusal("User and password have no place in it.") }
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { throw Refusal("Names are in ASCII (punycode: xn--...).") }
        guard !text.contains("://") else { throw Refusal("The host stands alone, without http:// or https://.") }
        guard !text.contains("/") else { throw Refusal("Paths and ranges of addresses are not supported.") }
        let parts = try HostPort(text[...])
        let scope: Scope = parts.host.hasPrefix("*.") ? .below : parts.host.hasPrefix(".") ? .domain : .host
        let host = parts.host.dropFirst(scope.rawValue.count)
        guard !host.contains("*") else { throw Refusal("A star stands only at the beginning, before a dot.") }
        guard let name = HostName.canonical(host) else { throw Refusal("It names no host.") }
        guard scope == .host || !HostName.isAddress(name) else { throw Refusal("There is nothing below an address.") }
        (self.scope, self.name, port) = (scope, name, parts.port)
    }

    /// Not with an `@`: what stands before it may be a password.
    private static func shown(_ text: String) -> String {
        text.utf8.contains(UInt8(ascii: "@")) ? "This text" : "\"\(text.shortened)\""
    }

    /// The address that is meant, where it is one; 127.0.0.1 for `localhost`.
    package var address: NetworkAddress? {
        let isAddress = scope == .host && HostName.isAddress(name) || scope != .below && name == "localhost"
        return isAddress ? NetworkAddress(host: name) : nil
    }

    /// Whether `host`, a name or an address (IPv6 in brackets), is meant at `port`.
    public func matches(host: ExactText, port: Int) -> Bool {
        guard self.port == nil || self.port == port, let host = HostName.canonical(host.string) else { return false }
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
