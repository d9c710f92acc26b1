internal import Glibc

/// A failed system call of an event loop.
public struct LoopFailure: Error, Equatable, CustomStringConvertible {
    private let call: String
    private let error: Int32

    init(_ call: String, error: Int32 = errno) { (self.call, self.error) = (call, error) }

    public var description: String { "\(call) failed: \(String(cString: strerror(error)))" }
}
