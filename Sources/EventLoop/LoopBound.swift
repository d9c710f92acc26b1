/// Takes what belongs to a loop through other threads, on which it cannot be looked at.
///
/// `@unchecked Sendable`: the value is given away on its loop only, which is checked. Whoever drops the last one elsewhere must
/// not be the last to hold what is in it.
public struct LoopBound<Value>: @unchecked Sendable {
    private let loop: EventLoop
    private let bound: Value

    public init(_ value: Value, to loop: EventLoop) { (bound, self.loop) = (value, loop) }

    /// On the loop only.
    public var value: Value {
        loop.checkIsolated()
        return bound
    }
}
