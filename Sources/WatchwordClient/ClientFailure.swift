public import WatchwordProtocol

/// The reason why a call to the broker failed.
public enum ClientFailure: Error, Sendable, Equatable {
    /// No broker listens at `path`.
    case notRunning(path: String)
    case cannotStart(reason: String)
    /// Another user listens at `path`, or could; nothing was sent.
    case socketNotTrusted(path: String, reason: String)
    /// The broker closed the connection during the call.
    case connectionLost
    /// The broker did not reply in time to a call that does not wait for a person or a server.
    case silent
    /// The broker sent a message that violates the protocol.
    case protocolViolation(String)
    /// The user interrupted the call; it was cancelled.
    case interrupted(signal: Int32)
    /// The broker replied with an error.
    case refused(RPCError)
}

extension ClientFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notRunning(let path): "no broker listens at \(path); start watchwordd"
        case .socketNotTrusted(let path, let reason):
            "refusing to use the socket \(path): \(reason); the socket must be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword"
        case .cannotStart(let reason): "cannot start the broker: \(reason)"
        case .connectionLost: "the broker closed the connection; see its log, and try again"
        case .silent: "the broker does not answer; check whether it is stopped, and try again"
        case .protocolViolation(let what): "invalid message from the broker: \(what)"
        case .interrupted: "interrupted"
        case .refused(let error): error.text
        }
    }
}
