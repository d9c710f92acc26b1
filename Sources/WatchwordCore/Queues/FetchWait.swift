public import WatchwordProtocol

/// The reason why a fetch waits.
public struct FetchWait: Sendable, Equatable {
    public enum Reason: String, Sendable {
        /// A person is being asked for another fetch.
        case question
        /// Another fetch is looking up a credential, or has sent one and has no response yet.
        case trial
    }

    public var reason: Reason
    public var space: ProtectionSpace
    /// When the question was asked or the attempt began.
    public var since: Duration
}

/// The current activity of the holder of a lease, and when it began.
struct HolderActivity: Sendable, Equatable {
    private(set) var reason: FetchWait.Reason?
    private(set) var since = Duration.zero

    /// Returns whether the activity changed.
    mutating func record(_ reason: FetchWait.Reason, now: Duration) -> Bool {
        guard self.reason != reason else { return false }
        (self.reason, since) = (reason, now)
        return true
    }
}
