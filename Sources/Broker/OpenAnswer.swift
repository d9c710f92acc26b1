internal import WatchwordCore
internal import WatchwordProtocol

/// A login that somebody supplied in an answer, and of which it is not known yet what the server makes of it.
struct OpenAnswer {
    /// How it ended.
    enum Outcome: String {
        case accepted, refused
        /// The fetch has ended without a word of the server about it.
        case abandoned
        /// Another question has taken its place: the answer could not be used, or was one of several rounds.
        case superseded
    }

    let challengeID: String
    let isProxy: Bool
    /// `client` or `agent`.
    let by: String
    let connection: ConnectionID

    /// `nil` for what the server says nothing about.
    init?(_ challengeID: String, _ question: OpenQuestion, _ answer: ChallengeAnswer) {
        guard case .credential(let credential) = answer, let connection = question.place.connection else { return nil }
        if case .trust = credential { return nil }
        self.challengeID = challengeID
        isProxy = question.challenge.protectionSpace.proxyType != nil
        by = question.place.word
        self.connection = connection
    }

    func isAbout(_ verdict: LoginVerdict) -> Bool { isProxy == (verdict.space.proxyType != nil) }
}
