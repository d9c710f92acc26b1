public import WatchwordProtocol

/// The addresses to which no connection is made, for whatever purpose: the part of `fetch.deny` that is checked after name
/// resolution.
public struct AddressRules: Sendable, Equatable {
    private struct Rule: Equatable {
        let address: NetworkAddress
        /// `nil` for every port.
        let port: Int?
    }

    private let rules: [Rule]

    /// Denies nothing.
    public init() { rules = [] }

    /// Takes the patterns that stand for an address; `localhost` stands for this machine.
    public init(denied patterns: [HostPattern]) {
        rules = patterns.compactMap { pattern in pattern.address.map { Rule(address: $0, port: pattern.port) } }
    }

    public var isEmpty: Bool { rules.isEmpty }

    /// Whether a connection to `address` must not be made. One loopback address is as good as another: a rule for one is a rule
    /// for all of them.
    public func denies(_ address: NetworkAddress, port: Int) -> Bool {
        let reached = address.reached
        return rules.contains { rule in
            guard rule.port == nil || rule.port == port else { return false }
            return reached.contains { $0 == rule.address || $0.isThisMachine && rule.address.isThisMachine }
        }
    }
}
