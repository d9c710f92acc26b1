public import WatchwordProtocol

/// The addresses to which the broker never connects: the part of `fetch.deny` that is checked after name resolution.
public struct AddressRules: Sendable, Equatable {
    private struct Rule: Equatable {
        let address: NetworkAddress
        /// `nil` for every port.
        let port: Int?
    }

    private let rules: [Rule]

    /// Creates rules that deny nothing.
    public init() { rules = [] }

    /// Creates rules from the patterns for an address or `localhost`. Patterns for other host names are ignored.
    public init(denied patterns: [HostPattern]) {
        rules = patterns.compactMap { pattern in pattern.address.map { Rule(address: $0, port: pattern.port) } }
    }

    private init(_ rules: [Rule]) { self.rules = rules }

    /// Returns rules that also deny these ports of this machine.
    public func denying(portsOfThisMachine ports: [Int]) -> AddressRules {
        guard !ports.isEmpty, let loopback = Self.loopback else { return self }
        return AddressRules(rules + ports.map { Rule(address: loopback, port: $0) })
    }

    private static let loopback = NetworkAddress(host: "127.0.0.1")

    public var isEmpty: Bool { rules.isEmpty }

    /// Whether connections to some address at `port` are denied.
    public func concerns(port: Int) -> Bool { rules.contains { $0.port == nil || $0.port == port } }

    /// Whether a connection to `address` is denied. A rule for one address of this machine (loopback or unspecified)
    /// applies to all of them.
    public func denies(_ address: NetworkAddress, port: Int) -> Bool {
        let reached = address.reached
        return rules.contains { rule in
            guard rule.port == nil || rule.port == port else { return false }
            // guard: address-loopback
            return reached.contains { $0 == rule.address || $0.isThisMachine && rule.address.isThisMachine }
        }
    }
}
