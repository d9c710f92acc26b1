/// The state of one NTLM login at one server or proxy in one transfer: type 1 message, challenge (type 2), type 3
/// message.
///
/// libcurl makes the messages, and would restart the login without a limit. This type decides when to stop libcurl, so
/// that one answer to a prompt causes only one attempt.
public struct NTLMAttempt: Sendable, Equatable {
    private enum Stage: Equatable {
        /// No message was sent so far. A transfer on a connection that is already authenticated stays in this state.
        case unsent
        /// The type 1 message is being sent; no response has begun.
        case begun
        /// A response has begun, without a challenge so far.
        case pending
        /// A response contains a challenge; libcurl answers it after that response.
        case challenged
        /// Another response has begun, with the verdict on the type 3 message.
        case answered
        /// The server has refused the type 3 message; libcurl returns that response.
        case refused
        case ended(End)
    }

    /// The reason to stop libcurl.
    public enum End: Sendable, Equatable {
        /// The challenge must not be answered.
        case unusable(NTLMChallenge.Problem)
        /// The server refused the type 3 message, and sent another challenge.
        case refused
        /// The login would have to start again before a type 3 message got a verdict: the connection ended, or the
        /// server ignores the messages.
        case notContinued
    }

    private var stage = Stage.unsent

    public init() {}

    /// The reason to stop libcurl; `nil` while it may continue.
    public var end: End? {
        if case .ended(let end) = stage { end } else { nil }
    }

    /// The value of `end` once the transfer has ended. `notContinued` if the challenge was not answered, or if no
    /// response followed the answer.
    public var endOfTransfer: End? { stage == .challenged ? .notContinued : end }

    /// Called before libcurl opens a connection, on which it would start with a type 1 message.
    /// - Returns: whether libcurl may open the connection.
    public mutating func connect() -> Bool {
        switch stage {
        case .unsent, .begun: stage = .begun
        case .pending, .challenged, .answered, .refused: stage = .ended(.notContinued)
        case .ended: break
        }
        return end == nil
    }

    /// Called when a response of the server or of the proxy begins.
    public mutating func beginResponse() {
        switch stage {
        case .begun: stage = .pending
        case .challenged: stage = .answered
        case .unsent, .pending, .answered, .refused, .ended: break
        }
    }

    /// Called for each NTLM element of a response. libcurl acts on them at the end of the header section.
    /// - Parameter isChallenge: whether the status is the one with which the target asks for a login: 401 or, for a
    ///   proxy, 407.
    public mutating func receive(_ field: NTLMField, isChallenge: Bool) {
        switch (field, stage) {
        case (_, .ended): break
        case (.unusable(let problem), _): stage = .ended(.unusable(problem))
        case (.challenge, .answered), (.challenge, .refused): stage = .ended(.refused)  // guard: ntlm-one-answer
        case (.challenge, _): stage = .challenged
        case (.bare, _) where !isChallenge: break
        // The earlier login of the connection has become invalid; libcurl starts again on it.
        case (.bare, .unsent): stage = .begun
        case (.bare, .begun), (.bare, .pending): stage = .ended(.notContinued)
        // After a challenge in the same response, libcurl returns that response.
        case (.bare, .challenged): break
        case (.bare, .answered): stage = .refused
        case (.bare, .refused): stage = .ended(.refused)
        }
    }
}
