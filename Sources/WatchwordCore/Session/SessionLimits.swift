public import WatchwordProtocol

/// The limits of the session cache.
public struct SessionLimits: Sendable, Equatable {
    /// The maximum number of accepted credentials. The same limit applies separately to staged ones.
    public var entries: Int
    /// The maximum number of entries in the partition of one program or client.
    static let entriesOfPart = 64
    /// The maximum number of programs remembered as providers of one credential.
    static let providers = 16
    /// The maximum number of directories in one entry.
    public var paths: Int
    /// An entry is dropped when it was not used for this long.
    public var idle: Duration
    /// An entry is dropped after this time, however often it was used.
    public var lifetime: Duration

    public init(
        entries: Int = Limits.sessionEntries, paths: Int = Limits.sessionPaths, idle: Duration = Limits.sessionIdle,
        lifetime: Duration = Limits.sessionLifetime
    ) {
        self.entries = entries
        self.paths = paths
        self.idle = idle
        self.lifetime = lifetime
    }

    /// Returns the times for answers to a challenge of this method. A trust exception is not limited by its use.
    func times(for method: AuthenticationMethod) -> Challenge.SessionTimes {
        Challenge.SessionTimes(idle: method == .serverTrust ? nil : idle, lifetime: lifetime)
    }

    /// Whether an entry of the session is still valid.
    /// - Parameter wallTime: see `SessionCache.wallTime`.
    func allow(
        _ credential: LoginCredential, since: Duration, lastUse: Duration, now: Duration, _ wallTime: Duration
    ) -> Bool {
        allow(since: since, lastUse: lastUse, now: now) && !credential.isExpired(at: wallTime)  // guard: session-expiry
    }

    public func allow(since: Duration, lastUse: Duration, now: Duration) -> Bool {
        now < end(since: since, lastUse: lastUse)
    }

    /// Returns when an entry is no longer valid, unless it is used until then.
    func end(since: Duration, lastUse: Duration) -> Duration { min(lastUse + idle, since + lifetime) }
}

/// The times before which no credential is over, so that nobody has to look at all.
struct NextEnd: Sendable {
    /// On the monotonic clock; `nil` if there is none.
    private var time: Duration?
    /// Since 1970; `nil` if there is none.
    private var wallTime: Duration?

    static let never = NextEnd(time: nil, wallTime: nil)
    static let unknown = NextEnd(time: .zero, wallTime: .zero)

    func hasCome(_ now: Duration, _ wallTime: Duration) -> Bool {
        time.map { now >= $0 } ?? false || self.wallTime.map { wallTime >= $0 } ?? false
    }

    mutating func include(_ credential: LoginCredential, _ end: Duration) {
        time = min(time ?? end, end)
        if let expiry = credential.expiresAt { wallTime = min(wallTime ?? expiry, expiry) }
    }
}
