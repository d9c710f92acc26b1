/// The body of a request to a front.
public enum FrontBody: Sendable, Equatable {
    case none
    case bytes([UInt8])
    /// The body is received through a socket.
    case stream(size: Int?)
}
