/// A reference to a value that belongs to a loop. It can be passed through other threads, but read only on the loop.
///
/// `@unchecked Sendable`: `value` checks that it is read on the loop. If the last copy is released on another thread,
/// something on the loop must still refer to the value, so that it is not deinitialized on the other thread.
public struct LoopBound<Value>: @unchecked Sendable {
    private let loop: EventLoop
    private let bound: Value

    public init(_ value: Value, to loop: EventLoop) { (bound, self.loop) = (value, loop) }

    /// The value. To be read on the loop only.
    public var value: Value {
        loop.checkIsolated()
        return bound
    }
}
