/// The event loop on whose thread the broker and the sockets of its clients run. Its creator must retain it as long as
/// the broker is in use.
public protocol BrokerLoop: SerialExecutor {
    /// Runs `call` on the loop's thread, after all calls posted before. May be called on any thread.
    /// - Returns: `false` if the loop has ended; then `call` is never run.
    @discardableResult
    func post(_ call: @escaping @Sendable () -> Void) -> Bool

    /// Statistics of the loop's turns.
    var turnTimes: TurnTimes { get }
}

/// A histogram of the durations of a loop's turns. A long turn delays every client.
public struct TurnTimes: Sendable {
    /// The upper bounds of the buckets in milliseconds; one more bucket without a bound follows.
    public var bounds: [Int]
    /// The number of turns in each bucket; one element more than `bounds`.
    public var counts: [Int]
    public var longest: Duration

    public init(bounds: [Int], counts: [Int], longest: Duration) {
        (self.bounds, self.counts, self.longest) = (bounds, counts, longest)
    }
}
