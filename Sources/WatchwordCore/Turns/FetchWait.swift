public import WatchwordProtocol

/// What a fetch waits for.
public struct FetchWait: Sendable, Equatable {
    public enum Reason: String, Sendable {
        /// A person was asked for another fetch.
        case question
        /// Another fetch looks for a credential, or has sent one and has no response yet.
        case trial
    }

    public var reason: Reason
    public var space: ProtectionSpace
    /// When that question was put, or that attempt began.
    public var since: Duration
}

/// What the holder of a turn is doing, and since when.
struct HolderActivity: Sendable, Equatable {
    private(set) var reason: FetchWait.Reason?
    private(set) var since = Duration.zero

    /// Returns whether that is something else than before.
    mutating func note(_ reason: FetchWait.Reason, now: Duration) -> Bool {
        guard self.reason != reason else { return false }
        (self.reason, since) = (reason, now)
        return true
    }
}
