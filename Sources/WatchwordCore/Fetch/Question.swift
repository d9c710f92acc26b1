internal import WatchwordProtocol

/// Something that somebody has to decide before a fetch can go on, and how far the search for an answer has come.
struct Question: Sendable {
    indirect enum Kind: Sendable {
        /// A response challenges.
        case login(OfferList, Side)
        /// What is wrong with a server's certificate, or all of it for a client that pins.
        case serverTrust(ServerTrustFacts)
        /// A server asks for a certificate.
        case clientCertificate(ClientCertificateRequest)
    }

    /// What the fetch comes to, should nobody decide.
    indirect enum Outcome: Sendable {
        case response(TransferResponse)
        case failure(FetchFailure)
    }

    let kind: Kind
    let outcome: Outcome
    /// The scheme in question.
    var asked: AnswerableChallenge?
    /// The respondents that gave no credential for this challenge.
    var declined = PassedRespondents()
    /// What was proposed with the challenge, and has not been tried.
    var proposed: Candidate?
    /// The stored credentials that were listed with the challenge.
    var known: [KnownCredential] = []
    /// Something is stored for the challenge, and not used because the server has accepted a stronger scheme.
    var withholdsStored = false
    /// What is to be tried once the verdict on the same credential of another fetch is known.
    var deferred: Candidate?
    /// Why what was tried last for a connection was of no use.
    var problem: Challenge.AnswerProblem?
    /// Why the login that was tried could not be made. The fetch fails with it, unless somebody leaves it at the response.
    var obstacle: FetchFailure?
    /// When it was put to somebody, among what was forgotten by hand; `nil` before.
    var mark: ForgetLog.Mark?
    /// The client's own, from its last answer to a scheme of several rounds.
    var state: ExactText?

    init(_ kind: Kind, _ outcome: Outcome) {
        self.kind = kind
        self.outcome = outcome
    }

    /// Another challenge is in question now; what was proposed and listed was for the last one.
    mutating func ask(_ challenge: AnswerableChallenge?) {
        asked = challenge
        proposed = nil
        known = []
        withholdsStored = false
    }

    /// Whose turn it takes to decide it.
    var slot: TurnSlot {
        switch kind {
        case .login(_, .server): .server
        case .login(_, .proxy): .proxy
        case .serverTrust, .clientCertificate: .connection
        }
    }

    var response: TransferResponse? {
        if case .response(let response) = outcome { response } else { nil }
    }
}

/// What a fetch goes on with that waits for another one.
enum Paused: Sendable {
    case question(Question)
    /// The request that is to carry a credential to this side.
    case request(Side)

    /// For whom it waits; see `TurnSlot`.
    var side: Side? { if case .request(let side) = self { side } else { nil } }
}
