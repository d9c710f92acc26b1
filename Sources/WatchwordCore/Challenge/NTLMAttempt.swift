/// One login by NTLM at one server or proxy, as one transfer sees it: a type 1 message, a challenge, a type 3 message.
///
/// libcurl makes the messages, and begins again as often as it is asked to. This decides when to stop it: one answer of a person
/// is one attempt.
public struct NTLMAttempt: Sendable, Equatable {
    private enum Stage: Equatable {
        /// Nothing was sent: the transfer uses a connection that was there before, which is logged in.
        case unsent
        /// The type 1 message goes out; no response has come.
        case begun
        /// A response came, without a challenge so far.
        case pending
        /// A response holds a challenge, which libcurl answers when it has read that response.
        case challenged
        /// Another response came since then: what the server says to the type 3 message.
        case answered
        /// The server has refused the type 3 message; libcurl hands over that response.
        case refused
        case ended(End)
    }

    /// Why libcurl has to be stopped.
    public enum End: Sendable, Equatable {
        /// The challenge must not be answered.
        case unusable(NTLMChallenge.Problem)
        /// The type 3 message was refused, by another challenge.
        case refused
        /// The login would have to begin again before a type 3 message was judged: the connection ended, or the server ignores
        /// what it was sent.
        case notContinued
    }

    private var stage = Stage.unsent

    public init() {}

    /// Why libcurl has to be stopped; `nil` while it may go on.
    public var end: End? {
        if case .ended(let end) = stage { end } else { nil }
    }

    /// The same at the end of the transfer: a challenge that libcurl has not answered, or nobody has judged the answer to.
    public var endOfTransfer: End? { stage == .challenged ? .notContinued : end }

    /// libcurl wants to open a connection. On a new one it begins with a type 1 message.
    /// - Returns: whether it may.
    public mutating func connect() -> Bool {
        switch stage {
        case .unsent, .begun: stage = .begun
        case .pending, .challenged, .answered, .refused: stage = .ended(.notContinued)
        case .ended: break
        }
        return end == nil
    }

    /// A response begins, from the server or a proxy on the way.
    public mutating func beginResponse() {
        switch stage {
        case .begun: stage = .pending
        case .challenged: stage = .answered
        case .unsent, .pending, .answered, .refused, .ended: break
        }
    }

    /// A response holds `field`. What libcurl does about it, it does at the end of the header section.
    /// - Parameter isChallenge: the status of the response is the one with which the target asks for a login.
    public mutating func receive(_ field: NTLMField, isChallenge: Bool) {
        switch (field, stage) {
        case (_, .ended): break
        case (.unusable(let problem), _): stage = .ended(.unusable(problem))
        case (.challenge, .answered), (.challenge, .refused): stage = .ended(.refused)
        case (.challenge, _): stage = .challenged
        case (.bare, _) where !isChallenge: break
        // The login of a connection from before is over, and begins again on it.
        case (.bare, .unsent): stage = .begun
        case (.bare, .begun), (.bare, .pending): stage = .ended(.notContinued)
        // Behind a challenge in the same response it makes libcurl hand that over.
        case (.bare, .challenged): break
        case (.bare, .answered): stage = .refused
        case (.bare, .refused): stage = .ended(.refused)
        }
    }
}
