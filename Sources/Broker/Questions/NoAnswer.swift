internal import WatchwordCore

/// Why a respondent has no answer to a question.
enum NoAnswer: String {
    /// It said `default`: as though it had not been asked.
    case declined
    case deadline
    /// It has ended its connection, or its writing side.
    case disconnected
    /// It takes no more questions (`auth/unsubscribe`, `agent/unregister`).
    case unregistered
    /// It replied with an error.
    case failed
    /// The fetch of the question has ended first.
    case cancelled

    /// Whether it never answered. Then nothing that is stored is sent (security rule X1).
    var isSilence: Bool { self != .declined }
}
