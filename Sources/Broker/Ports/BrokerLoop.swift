/// The one thread on which the broker lives, together with its clients' sockets.
public protocol BrokerLoop: Sendable {
    /// Of the broker's actor. Kept alive by whoever made the loop for as long as the broker is in use.
    var executor: any SerialExecutor { get }

    /// Runs `call` on the thread, soon, and in the order of the calls. From every thread.
    func post(_ call: @escaping @Sendable () -> Void)
}
