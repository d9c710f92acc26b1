public import WatchwordCore
public import WatchwordProtocol

/// The settings from the configuration file; without a file, the defaults.
public struct Settings: Sendable, Equatable {
    /// The programs that may use the credentials of the session.
    public enum Sharing: String, Sendable, CaseIterable {
        /// All programs of the user.
        case user
        /// Only the connection that provided the credential.
        case client
        /// The programs that the user has allowed.
        case ask
    }

    /// How long a challenge waits for an answer.
    public var challengeDeadline = Limits.challengeDeadline
    /// The time after which an unused session entry expires.
    public var sessionIdle = Limits.sessionIdle
    /// The time after which a session entry expires even if it is used.
    public var sessionLifetime = Limits.sessionLifetime
    /// The maximum number of accepted credentials in the session cache; the same limit applies separately to staged
    /// ones.
    public var sessionEntries = Limits.sessionEntries

    /// Whether credentials are looked up and stored in the keyring.
    public var keyringEnabled = true
    /// The timeout of a call to the keyring.
    public var keyringCall = Limits.keyringCall

    /// The hosts that may be fetched from; `nil` for all, an empty list for none.
    public var allowedHosts: [HostPattern]?
    /// The hosts that must not be fetched from, even if `allowedHosts` contains them.
    public var deniedHosts: [HostPattern] = []

    /// The programs that may use the credentials of the session.
    public var sharing = Sharing.user

    /// The canonical URL of the proxy: `http://`, `https://` or `socks5h://` with a host and a port; `nil` for none.
    public var proxyURL: String?
    /// The hosts that are reached without the proxy.
    public var proxyExceptions: [HostPattern] = []
    /// The upstreams for some hosts. The first rule that matches applies.
    public var proxyRules: [ProxyRuleSetting] = []
    /// The URL of the PAC file: `file:///`, `http://` or `https://`; `nil` for none.
    public var proxyPAC: String?
    /// Whether the proxy settings of the desktop are used.
    public var usesDesktopProxy = false

    /// The PKCS#11 module; `nil` for that of p11-kit.
    public var tokenModule: String?
    /// Hosts for which the user's Kerberos tickets are used.
    public var negotiateHosts: [HostPattern] = []
    /// Hosts that receive a delegated Kerberos ticket, with which they can act as the user.
    public var delegationHosts: [HostPattern] = []
    /// Hosts for which NTLM is allowed.
    public var ntlmHosts: [HostPattern] = []
    /// Hosts that expect ISO 8859-1 in a login by Digest.
    public var latin1Hosts: [HostPattern] = []
    /// Scheme orders for some hosts. The first that matches applies.
    public var schemeOrders: [SchemeOrder] = []
    /// Whether outdated and malformed challenges are answered.
    public var allowsWeak = true

    /// Programs that may receive passwords (`credential/get`).
    public var releaseRules: [ReleaseRule] = []
    /// The path of a netrc file, beginning with "/" or "~/"; `nil` for none.
    public var netrcFile: String?
    /// Commands that print passwords. The first one for a host is used.
    public var credentialCommands: [CredentialCommand] = []

    /// Whether the audit log is written.
    public var auditEnabled = true
    /// The size at which the audit log is rotated, in bytes.
    public var auditFileBytes = 4 << 20
    /// The number of rotated files, not counting the current one.
    public var auditOldFiles = 4

    /// The address of the forward proxy; `nil` for none.
    public var frontProxy: FrontAddress?
    /// The hosts that programs reach through the forward proxy.
    public var frontHosts: [HostPattern] = []
    /// The ports to which proxies open tunnels.
    public var frontTunnelPorts = [443, 80, 22, 8443]
    /// The sites that the broker serves.
    public var frontSites: [FrontSiteSetting] = []

    /// Whether the broker filters its system calls with seccomp.
    public var filtersSystemCalls = false

    /// The rules for tokens, those of the longest resources first. Presets are not included.
    public var oauthRules: [OAuthRule] = []
    /// The files with the secrets of their clients, which `readClientSecrets` reads.
    var clientSecretFiles: [ClientSecretFile] = []
    /// The problems of files that the configuration names. What needs the file is not used; everything else is.
    public var fileProblems: [SettingsProblem] = []

    public init() {}

    /// Returns the changed options that take effect only when the broker is restarted.
    ///
    /// - Parameter started: the settings with which the broker was started.
    public func optionsThatNeedRestart(since started: Settings) -> [String] {
        [
            ("tokens.module", tokenModule != started.tokenModule),
            ("process.filter-system-calls", filtersSystemCalls != started.filtersSystemCalls),
            ("front.proxy", frontProxy != started.frontProxy), ("front.hosts", frontHosts != started.frontHosts),
            ("front.tunnel-ports", frontTunnelPorts != started.frontTunnelPorts),
            ("front.site", frontSites != started.frontSites),
        ].filter(\.1).map(\.0)
    }
}

/// The upstreams for some hosts.
public struct ProxyRuleSetting: Sendable, Equatable {
    public var hosts: [HostPattern]
    /// Canonical URLs of proxies, and `direct`, in order of preference.
    public var use: [String]
}

/// A site that the broker serves, and its address.
public struct FrontSiteSetting: Sendable, Equatable {
    public var address: FrontAddress
    public var site: FrontSite
}
