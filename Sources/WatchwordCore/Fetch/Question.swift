internal import WatchwordProtocol

/// A decision that a fetch needs before it can continue, and the state of the search for an answer.
struct Question: Sendable {
    indirect enum Kind: Sendable {
        /// A login challenge in a response.
        case login(OfferList, Side)
        /// A server certificate that does not verify, or any certificate with `tls.trust: "always"`.
        case serverTrust(ServerTrustFacts)
        /// A server's request for a client certificate.
        case clientCertificate(ClientCertificateRequest)
    }

    /// The outcome of the fetch if no decision is made.
    indirect enum Outcome: Sendable {
        case response(TransferResponse)
        case failure(FetchFailure)
    }

    let kind: Kind
    let outcome: Outcome
    /// When the login challenge arrived.
    var since = Duration.zero
    /// The challenge to ask about.
    var asked: AnswerableChallenge?
    /// The respondents that supplied no credential for this challenge.
    var declined = PassedRespondents()
    /// The untried credential that the challenge proposes.
    var proposed: Candidate?
    /// The stored credentials that the challenge lists.
    var known: [KnownCredential] = []
    /// The login in a browser that provides the token.
    var login: TokenLogin?
    /// Whether a stored credential is withheld because the server has accepted a stronger scheme.
    var withholdsStored = false
    /// The candidate to try as soon as the verdict on another fetch's attempt with the same credential is known.
    var deferred: Candidate?
    /// Whether nobody has challenged, and a token is obtained in place of one that was sent unasked.
    var isRenewal = false
    /// Why the last client certificate was refused or could not be used.
    var problem: Challenge.AnswerProblem?
    /// The technical reason why the last login failed. If the question ends without an answer, the fetch fails with it
    /// instead of `outcome`.
    var obstacle: FetchFailure?
    /// The state of the forget log when a respondent was asked; `nil` before.
    var mark: ForgetLog.Mark?
    /// The opaque state from the client's last answer in a scheme of several rounds.
    var state: ExactText?

    init(_ kind: Kind, _ outcome: Outcome) {
        self.kind = kind
        self.outcome = outcome
    }

    /// Changes the challenge to ask about, and drops the credentials that were proposed and listed for the previous
    /// one.
    mutating func ask(_ challenge: AnswerableChallenge?) {
        asked = challenge
        proposed = nil
        known = []
        login = nil
        withholdsStored = false
    }

    /// The slot of the lease that is needed to decide the question.
    var slot: LeaseSlot {
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

/// The step with which a waiting fetch continues.
enum WaitingStep: Sendable {
    case question(Question)
    /// A request with a login to this side.
    case request(Side)
}
