public import JSONText
public import WatchwordCore
public import WatchwordProtocol

/// What the daemon can set. `version`, `document`, `holdingLimits` and `filtersSystemCalls` stay as they are while it runs.
public struct BrokerOptions: Sendable {
    /// Of the program, as clients and `server/status` see it.
    public var version: String
    /// What `rpc.discover` returns: the OpenRPC document. Read when it is asked for, which is seldom.
    public var document: @Sendable () -> JSON
    /// How long a question waits for its answer.
    public var challengeDeadline: Duration
    public var session: SessionLimits
    /// Whether the keyring is read and written.
    public var isKeyringEnabled: Bool
    public var hosts: HostRules
    public var proxy: ProxyRule
    public var schemes: SchemeRules
    public var sharing: FetchTable.Sharing
    /// Which programs are given secrets, and whose.
    public var handOuts: [HandOutRule] = []
    /// Where logins are looked up that neither the session nor the keyring has; `nil` for nowhere.
    public var netrcFile: String?
    /// What clients may hold at once.
    public var holdingLimits = HoldingLimits()
    /// That the process has done so, for `server/status`.
    public var filtersSystemCalls = false

    public init(
        version: String, challengeDeadline: Duration = Limits.challengeDeadline,
        document: @autoclosure @escaping @Sendable () -> JSON = [:],
        session: SessionLimits = SessionLimits(), isKeyringEnabled: Bool = true, hosts: HostRules = HostRules(),
        proxy: ProxyRule = ProxyRule(), schemes: SchemeRules = SchemeRules(), sharing: FetchTable.Sharing = .user
    ) {
        self.version = version
        self.document = document
        self.challengeDeadline = challengeDeadline
        self.session = session
        self.isKeyringEnabled = isKeyringEnabled
        self.hosts = hosts
        self.proxy = proxy
        self.schemes = schemes
        self.sharing = sharing
    }
}
