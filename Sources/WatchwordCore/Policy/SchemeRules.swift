public import WatchwordProtocol

/// The configured rules about the use of authentication schemes.
public struct SchemeRules: Sendable, Equatable {
    /// An order of schemes for some hosts.
    public struct Site: Sendable, Equatable {
        public var hosts: [HostPattern]
        /// The schemes in the order in which they are tried; others are not used.
        public var order: [AuthenticationMethod]

        public init(hosts: [HostPattern], order: [AuthenticationMethod]) {
            self.hosts = hosts
            self.order = order
        }
    }

    /// Servers and proxies that may receive the user's Kerberos tickets.
    public var negotiateHosts: [HostPattern]
    /// The hosts of `negotiateHosts` that receive a delegated ticket, with which they can act as the user at other
    /// servers.
    public var delegationHosts: [HostPattern]
    /// Servers and proxies that may receive NTLM logins, which can be relayed and cracked offline.
    public var ntlmHosts: [HostPattern]
    /// Servers and proxies that expect ISO 8859-1 in a login by Digest, unless they state a charset.
    public var latin1Hosts: [HostPattern] = []
    /// The first site that matches applies.
    public var sites: [Site]
    /// Whether weak challenges, which have an old or malformed form, are answered (SEMANTICS rule 27).
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

    /// Whether the configuration allows the scheme.
    func allow(_ method: AuthenticationMethod, at challenger: Challenger) -> Bool {
        refusal(of: method, at: challenger) == nil
    }

    /// Returns why the configuration does not allow the scheme; `nil` if it does.
    func refusal(of method: AuthenticationMethod, at challenger: Challenger) -> Unanswered.Reason? {
        guard order(for: challenger)?.contains(method) ?? true else { return .excluded }
        return switch method {
        case .negotiate: challenger.matches(negotiateHosts) ? nil : .notListed  // guard: negotiate-hosts
        case .ntlm: challenger.matches(ntlmHosts) ? nil : .notListed  // guard: ntlm-hosts
        default: nil
        }
    }
}
