public import WatchwordProtocol

/// What the configuration file decides. Without a file everything is at its default.
public struct Settings: Sendable, Equatable {
    /// Who may use the credentials of a session.
    public enum Sharing: String, Sendable, CaseIterable {
        /// Every program of the user.
        case user
        /// Only the connection that brought them.
        case client
        /// Every program of the user that the user has let.
        case ask
    }

    /// How long a question waits for its answer.
    public var challengeDeadline = Limits.challengeDeadline
    /// A session entry that nobody uses ends after this time.
    public var sessionIdle = Limits.sessionIdle
    /// A session entry ends after this time in any case.
    public var sessionLifetime = Limits.sessionLifetime
    /// Protection spaces that the session remembers.
    public var sessionEntries = Limits.sessionEntries

    /// Whether credentials are looked for, and kept, in the keyring.
    public var keyringEnabled = true
    /// How long one call to the keyring may take.
    public var keyringCall = Limits.keyringCall

    /// The hosts that may be fetched from; `nil` for all, an empty list for none.
    public var allowedHosts: [HostPattern]?
    /// The hosts that are not fetched from, also where `allowedHosts` has them.
    public var deniedHosts: [HostPattern] = []

    /// Who may use the credentials of a session.
    public var sharing = Sharing.user

    /// The proxy, canonical: `http://`, `https://` or `socks5h://` with a host and a port; `nil` for none.
    public var proxyURL: String?
    /// The hosts that are reached without the proxy.
    public var proxyExceptions: [HostPattern] = []

    /// The PKCS#11 module; `nil` for that of p11-kit.
    public var tokenModule: String?
    /// Hosts that the user's Kerberos tickets are good for.
    public var negotiateHosts: [HostPattern] = []
    /// Hosts that may act as the user elsewhere.
    public var delegationHosts: [HostPattern] = []
    /// Hosts that get NTLM.
    public var ntlmHosts: [HostPattern] = []
    /// Hosts with an order of schemes of their own. The first that matches counts.
    public var schemeOrders: [SchemeOrder] = []
    /// Whether old and sloppy challenges are answered.
    public var allowsWeak = true

    /// Programs that are given passwords themselves.
    public var handOuts: [HandOutRule] = []
    /// Logins in a file, from "/" or "~/" on; `nil` for none.
    public var netrcFile: String?

    /// Whether an account is kept of who used what for where.
    public var auditEnabled = true
    /// The largest size of one of its files.
    public var auditFileBytes = 4 << 20
    /// How many of its files are kept besides the one that is written to.
    public var auditOldFiles = 4

    /// Whether the broker forbids itself what it never does.
    public var filtersSystemCalls = false

    /// Everything at its default.
    public init() {}
}
