public import WatchwordProtocol

/// The bounds of the session cache.
public struct SessionLimits: Sendable, Equatable {
    public var entries: Int
    /// Of these, those that one program, or one client, has for itself.
    static let entriesOfPart = 64
    /// How many programs are known to have brought one credential.
    static let bringers = 16
    public var paths: Int
    /// An entry that was not used for this long is dropped.
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

    func allow(_ entry: SessionEntry, now: Duration) -> Bool {
        allow(since: entry.since, lastUse: entry.lastUse, now: now)
    }

    func allow(since: Duration, lastUse: Duration, now: Duration) -> Bool {
        now - lastUse < idle && now - since < lifetime
    }
}
