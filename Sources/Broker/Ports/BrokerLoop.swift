/// The one thread on which the broker lives, together with its clients' sockets. Kept alive by whoever made it for as long as
/// the broker is in use.
public protocol BrokerLoop: SerialExecutor {
    /// Runs `call` on the thread, soon, and in the order of the calls. From every thread.
    /// - Returns: `false` when the loop has ended.
    @discardableResult
    func post(_ call: @escaping @Sendable () -> Void) -> Bool

    /// How long its turns have taken so far.
    var turnTimes: TurnTimes { get }
}

/// How often a turn of a loop has taken how long. What one client waits for another is in here.
public struct TurnTimes: Sendable {
    /// In milliseconds; the last class, which has no bound, follows.
    public var bounds: [Int]
    /// One more than there are bounds.
    public var counts: [Int]
    public var longest: Duration

    public init(bounds: [Int], counts: [Int], longest: Duration) {
        (self.bounds, self.counts, self.longest) = (bounds, counts, longest)
    }
}
