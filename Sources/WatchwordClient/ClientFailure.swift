public import WatchwordProtocol

/// Why a call to the broker gave no result.
public enum ClientFailure: Error, Sendable, Equatable {
    /// Nobody listens at `path`.
    case notRunning(path: String)
    case cannotStart(reason: String)
    /// Another user listens at `path`, or could: nothing was sent.
    case socketNotTrusted(path: String, reason: String)
    /// The broker went away in the middle of it.
    case connectionLost
    /// The broker says nothing, although it has nothing to wait for.
    case silent
    /// The broker said something that is not in the protocol.
    case protocolViolation(String)
    /// The user has interrupted the call; it was cancelled.
    case interrupted(signal: Int32)
    /// The broker's own answer.
    case refused(RPCError)
}

extension ClientFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notRunning(let path): "No broker listens at \(path). Start watchwordd."
        case .socketNotTrusted(let path, let reason):
            "refusing to use the socket \(path): \(reason); it has to be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword"
        case .cannotStart(let reason): "The broker could not be started: \(reason)"
        case .connectionLost: "The broker has closed the connection. Look at its log, and try again."
        case .silent: "The broker does not answer. Look whether it is stopped, and try again."
        case .protocolViolation(let what): "The broker said something that was not understood: \(what)."
        case .interrupted: "Interrupted."
        case .refused(let error): error.text
        }
    }
}
