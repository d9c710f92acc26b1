internal import Synchronization
public import WatchwordProtocol

/// The addresses to which the broker never connects: the part of `fetch.deny` that is checked after name resolution.
public struct AddressRules: Sendable, Equatable {
    private struct Rule: Equatable {
        let address: NetworkAddress
        /// `nil` for every port.
        let port: Int?
    }

    private let rules: [Rule]
    private let own: OwnPorts?

    /// Creates rules that deny nothing.
    public init() { (rules, own) = ([], nil) }

    /// Creates rules from the patterns for an address or `localhost`. Patterns for other host names are ignored.
    /// - Parameter own: the broker's own ports at the time of each connection; `nil` for none.
    public init(denied patterns: [HostPattern], own: OwnPorts? = nil) {
        rules = patterns.compactMap { pattern in pattern.address.map { Rule(address: $0, port: pattern.port) } }
        self.own = own
    }

    /// Whether no connection can ever be denied.
    public var isEmpty: Bool { rules.isEmpty && own == nil }

    /// Whether connections to some address at `port` are denied.
    public func concerns(port: Int) -> Bool {
        rules.contains { $0.port == nil || $0.port == port } || own?.contains(port) == true
    }

    /// Whether the broker itself listens at `address`.
    public func isOwn(_ address: NetworkAddress, port: Int) -> Bool { own?.lead(to: address, port: port) == true }

    /// Whether a connection to `address` is denied. A rule for one address of this machine (loopback or unspecified)
    /// applies to all of them.
    public func denies(_ address: NetworkAddress, port: Int) -> Bool {
        if isOwn(address, port: port) { return true }
        let reached = address.reached
        return rules.contains { rule in
            guard rule.port == nil || rule.port == port else { return false }
            // guard: address-loopback
            return reached.contains { $0 == rule.address || $0.isThisMachine && rule.address.isThisMachine }
        }
    }
}

/// The TCP ports of this machine at which the broker itself listens: those of fronts, and of logins in a browser. The broker
/// never connects to them, because a program that made it do so would be served as the broker. Thread-safe, because the ports change
/// between the choice of an address and the connection.
public final class OwnPorts: Sendable, Equatable {
    private let ports = Mutex<Set<Int>>([])

    public init() {}

    public static func == (left: OwnPorts, right: OwnPorts) -> Bool { left === right }

    public func set(_ ports: Set<Int>) { self.ports.withLock { $0 = ports } }

    public func contains(_ port: Int) -> Bool { ports.withLock { $0.contains(port) } }

    /// Whether a connection to `address` could reach the broker.
    public func lead(to address: NetworkAddress, port: Int) -> Bool {  // guard: own-address
        contains(port) && address.reached.contains(where: \.isThisMachine)
    }
}
