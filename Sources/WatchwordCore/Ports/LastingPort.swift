/// A place for what outlasts the broker, on a disk that may take its time.
public protocol LastingPort: Sendable {
    /// Calls `completion`, on any thread, when everything that was to be kept so far is written, or could not be.
    func whenKept(_ completion: @escaping @Sendable () -> Void)
}
