internal import WatchwordProtocol

/// The outcome of one step of a resolution; `FetchMachine` acts on it.
enum Resolution: Sendable {
    /// Send the next request with the decisions made.
    case send
    case ask(Question, Respondent, Challenge.AnswerProblem?)
    case consult(Consultation, Question)
    case confirm(Question, ConsentBook.Use, ConsentRequest)
    case lookUp(Question, [[ExactText: ExactText]])
    case readNetrc(Question, NetrcQuery)
    case obtainToken(Question, TokenQuery)
    case wait(Question, AuthenticationQueues.QueuePosition)
    /// Ask the client to send the request's body again.
    case needBody
    /// Choose again from the start, because a condition has changed.
    case chooseAgain(Question)
    /// End the question without an answer.
    case endUnanswered(Question)
    case fail(FetchFailure)
}
