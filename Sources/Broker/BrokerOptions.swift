public import WatchwordCore
public import WatchwordProtocol

/// The settings of the broker. `version`, `quotaLimits` and `filtersSystemCalls` do not change while the broker runs.
public struct BrokerOptions: Sendable {
    /// The version of the program, for `initialize` and `server/status`.
    public var version: String
    /// The time limit for the answer to a question.
    public var challengeDeadline = Limits.challengeDeadline
    public var session = SessionLimits()
    /// Whether the keyring is read and written.
    public var isKeyringEnabled = true
    public var hosts = HostRules()
    public var proxy = ProxyRule()
    /// The origin of the upstreams of servers that no rule of `proxy` names; `nil` for none.
    public var upstreamSource: UpstreamSource?
    public var schemes = SchemeRules()
    public var sharing = FetchTable.Sharing.user
    /// The rules for `credential/get`: which programs get the secrets for which hosts.
    public var releaseRules: [ReleaseRule] = []
    /// The path of the netrc file, which is searched after the session cache and the keyring; `nil` for none.
    public var netrcFile: String?
    /// Commands that print passwords, which are used after the netrc file; the first one for a host.
    public var credentialCommands: [CredentialCommand] = []
    /// The rules for tokens of OAuth: those of the configuration and the presets, those of the longest resources first.
    public var oauthRules: [OAuthRule] = [] { didSet { tokens = OAuthRules(oauthRules) } }
    private(set) var tokens = OAuthRules([])
    var rules: FetchRules {
        FetchRules(
            hosts: hosts, schemes: schemes, usesNetrc: netrcFile != nil || !credentialCommands.isEmpty, tokens: tokens)
    }
    /// The fronts that are open as long as the broker runs.
    public var fronts = FrontOptions()
    public var quotaLimits = QuotaLimits()
    /// Whether the process filters its system calls, for `server/status`.
    public var filtersSystemCalls = false

    public init(version: String) { self.version = version }
}

/// The fronts of the configuration. They do not change while the broker runs.
public struct FrontOptions: Sendable {
    /// The address of the forward proxy; `nil` for none.
    public var proxy: FrontAddress?
    /// The hosts to which the forward proxy forwards requests.
    public var hosts: [HostPattern] = []
    /// The ports to which any forward proxy opens tunnels.
    public var tunnelPorts = FrontAccess.defaultTunnelPorts
    public var sites: [(address: FrontAddress, site: FrontSite)] = []

    public init() {}
}
