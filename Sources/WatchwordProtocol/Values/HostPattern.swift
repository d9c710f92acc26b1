/// Which hosts are meant: one by its name, or those below a domain.
///
/// `intranet.example` is that host; `*.example.com` every host below the domain, and not the domain itself; `.example.com`
/// the domain and every host below it. `:8443` behind it means that port only. Names compare without regard to case.
public struct HostPattern: Sendable, Hashable {
    private enum Scope: Sendable, Hashable {
        case host, below, domain
    }

    private let name: String
    private let scope: Scope
    private let port: Int?

    /// `nil` for text that is not such a pattern.
    public init?(_ text: String) {
        var name = text.asciiLowercased[...]
        var port: Int?
        if let colon = name.lastIndex(of: ":"), !name.hasSuffix("]") {
            guard let number = Int(name[name.index(after: colon)...]), (1...65_535).contains(number) else { return nil }
            port = number
            name = name[..<colon]
        }
        let scope: Scope = name.hasPrefix("*.") ? .below : name.hasPrefix(".") ? .domain : .host
        name = name.dropFirst(scope == .below ? 2 : scope == .domain ? 1 : 0)
        let isAddress = name.hasPrefix("[") && name.hasSuffix("]") && scope == .host
        guard !name.isEmpty, name.utf8.count <= 253, !name.hasPrefix("."), !name.hasSuffix("."),
            isAddress || name.utf8.allSatisfy(\.isHostCharacter)
        else { return nil }
        self.name = String(name)
        self.scope = scope
        self.port = port
    }

    /// `host` as in a protection space: an IPv6 address has its brackets.
    public func matches(host: String, port: Int) -> Bool {
        guard self.port == nil || self.port == port else { return false }
        let host = host.asciiLowercased
        switch scope {
        case .host: return host == name
        case .below: return host.hasSuffix("." + name)
        case .domain: return host == name || host.hasSuffix("." + name)
        }
    }
}

extension UInt8 {
    /// Letters, digits, `-`, `.`, and `_`, which some hosts have in their names all the same.
    fileprivate var isHostCharacter: Bool {
        switch self {
        case 0x30...0x39, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }
}
