public import WatchwordProtocol

/// Which schemes are used where, out of the configuration.
public struct SchemeRules: Sendable, Equatable {
    /// An order of its own for some hosts.
    public struct Site: Sendable, Equatable {
        public var hosts: [HostPattern]
        /// The first is tried first; what is not named is not used.
        public var order: [AuthenticationMethod]

        public init(hosts: [HostPattern], order: [AuthenticationMethod]) {
            self.hosts = hosts
            self.order = order
        }
    }

    /// Servers and proxies that the Kerberos tickets of the user are good for.
    public var negotiateHosts: [HostPattern]
    /// Those among them that may act as the user elsewhere.
    public var delegationHosts: [HostPattern]
    /// Servers and proxies that get NTLM, which can be relayed and guessed offline.
    public var ntlmHosts: [HostPattern]
    /// The first that matches counts.
    public var sites: [Site]
    /// Whether old and sloppy challenges are answered (semantics rule 27).
    public var allowsWeak = true

    public init(
        negotiateHosts: [HostPattern] = [], delegationHosts: [HostPattern] = [], ntlmHosts: [HostPattern] = [],
        sites: [Site] = []
    ) {
        self.negotiateHosts = negotiateHosts
        self.delegationHosts = delegationHosts
        self.ntlmHosts = ntlmHosts
        self.sites = sites
    }

    func order(for challenger: Challenger) -> [AuthenticationMethod]? {
        sites.first { challenger.matches($0.hosts) }?.order
    }

    /// Whether the configuration lets the scheme be used at all.
    func allow(_ method: AuthenticationMethod, at challenger: Challenger) -> Bool {
        refusal(of: method, at: challenger) == nil
    }

    /// Why the configuration does not let the scheme be used; `nil` where it does.
    func refusal(of method: AuthenticationMethod, at challenger: Challenger) -> Unanswered.Reason? {
        guard order(for: challenger)?.contains(method) ?? true else { return .excluded }
        return switch method {
        case .negotiate: challenger.matches(negotiateHosts) ? nil : .notListed
        case .ntlm: challenger.matches(ntlmHosts) ? nil : .notListed
        default: nil
        }
    }
}
