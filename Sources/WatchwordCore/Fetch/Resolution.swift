internal import WatchwordProtocol

/// The outcome of one step in resolving a question; `FetchMachine` acts on it.
enum Resolution: Sendable {
    /// The next request, as it was decided.
    case send
    case ask(Question, Respondent, Challenge.AnswerProblem?)
    case consult(Consultation, Question)
    case confirm(Question, GrantBook.Use, ConsentRequest)
    case lookUp(Question, [[ExactText: ExactText]])
    case readNetrc(Question, NetrcQuery)
    case wait(Question, SpaceTurns.WaitingPlace)
    /// Once more from the beginning: something of what it rests on has changed.
    case chooseAgain(Question)
    /// Nobody has an answer.
    case giveUp(Question)
    case fail(FetchFailure)
}
