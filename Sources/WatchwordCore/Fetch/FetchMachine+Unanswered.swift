internal import WatchwordProtocol

/// Questions that nobody answered: the connection or the time of the respondent is over, or it failed. Security rule X1: that
/// never sends a credential.
extension FetchMachine {
    /// Nobody answers the last `ask`. The next respondent has the question; after the last one the challenge is the result.
    mutating func unanswered(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep {
        guard case .asking(var question, let respondent) = state else { return unexpected(&memory) }
        time.endQueue(environment.now)
        question.declined.noteSilence(of: respondent)
        return choose(question, environment, &memory)
    }

    /// Nobody answers the last `consult`: nothing that is stored is used, and nobody is asked about the space.
    mutating func noteSilence(about consultation: Consultation) {
        if case .canAuthenticate(let space) = consultation {
            targets[Challenger(space), default: TargetRecord()].canAuthenticate[space] = false
        }
        storageAnswer = false
    }
}
