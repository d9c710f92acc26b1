/// Storage for data that outlives the broker, on a disk that may be slow.
public protocol DurableStore: Sendable {
    /// Calls `completion`, on any thread, after everything passed so far was written or has failed to be written: with
    /// `nil`, or with the reason of the last failure.
    func whenStored(_ completion: @escaping @Sendable (_ failure: String?) -> Void)
}
