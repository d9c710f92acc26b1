/// The one thread on which the broker lives, together with its clients' sockets. Kept alive by whoever made it for as long as
/// the broker is in use.
public protocol BrokerLoop: SerialExecutor {
    /// Runs `call` on the thread, soon, and in the order of the calls. From every thread.
    /// - Returns: `false` when the loop has ended.
    @discardableResult
    func post(_ call: @escaping @Sendable () -> Void) -> Bool
}
