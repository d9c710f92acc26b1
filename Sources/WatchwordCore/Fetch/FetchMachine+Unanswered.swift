internal import WatchwordProtocol

/// Questions that nobody answered: the connection or the time of the respondent is over, or it failed. Security rule X1: that
/// never sends a credential.
extension FetchMachine {
    /// Nobody answers the last `ask`. The next respondent has the question; after the last one the challenge is the result.
    mutating func unanswered(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&memory) }
        question.declined.noteSilence(of: respondent)
        return askOthers(question, environment, &memory)
    }

    /// Continues an abandoned question without a look at what is stored.
    mutating func askOthers(
        _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard let space = space(of: question), let respondent = nextRespondent(for: question, in: space) else {
            return giveUp(question, environment, &memory)
        }
        return ask(question, respondent, problem: nil, &memory)
    }

    /// Nobody answers the last `consult`: nothing that is stored is used, and nobody is asked about the space.
    mutating func noteSilence(about consultation: Consultation) {
        if case .canAuthenticate(let space) = consultation {
            targets[Challenger(space), default: TargetRecord()].canAuthenticate[space] = false
        }
        storageAnswer = false
    }
}
