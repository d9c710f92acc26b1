public import WatchwordProtocol

/// The next action for a fetch. The fetch waits for its outcome, except after `finish` and `fail`.
public indirect enum FetchCommand: Sendable, Equatable {
    /// Make this request; then report `received` or `failed`.
    case transfer(SharedRequest)
    /// Send this challenge to the respondent; then report `answered`, `unanswered` or `notAsked`.
    case ask(Challenge, Respondent)
    /// Ask a person for consent; then report `confirmed`.
    case confirm(ConsentRequest)
    /// Send this request to the client; then report `consulted`.
    case consult(Consultation)
    /// Search the keyring for items with any of these sets of attributes; then report `found`.
    case lookUp([[ExactText: ExactText]])
    /// Search the netrc file, then run a configured command; then report `found`.
    case readNetrc(NetrcQuery)
    /// Obtain a token from an authorization server; then report `found`.
    case obtainToken(TokenQuery)
    /// Find the upstreams for a server by the PAC file or the settings of the desktop; then report `foundUpstreams` with an
    /// environment that contains them.
    case findUpstreams(Origin)
    /// Wait for an update from another fetch.
    case wait
    /// Ask the client to send the request's body again; then report `supplied`.
    case needBody
    /// The fetch has ended with a result. No command follows.
    case finish(FetchResponse)
    /// The fetch has failed. No command follows.
    case fail(FetchFailure)

    /// Whether the fetch waits for an answer from its client or from a person.
    var asksPeople: Bool {
        switch self {
        case .ask, .confirm, .consult: true
        case .transfer, .lookUp, .readNetrc, .obtainToken, .findUpstreams, .wait, .needBody, .finish, .fail: false
        }
    }
}

/// An action that no fetch waits for.
public indirect enum FetchEffect: Sendable, Equatable {
    /// Notify the client that made the fetch.
    case notify(FetchEvent)
    /// Write this record to the audit log.
    case audit(AuditRecord)
    /// Notify the client that supplied this login whether it was accepted.
    case report(LoginVerdict)
    /// Store this credential in the keyring.
    case store(LoginCredential, SpacePattern)
    /// Remove this item from the keyring, if it still contains this credential.
    case remove(item: String, LoginCredential)
    /// Announce a change of the stored credentials.
    case announce(CredentialChange)
    /// Close the connections of this identity.
    case closeConnections(ConnectionIdentity)
    /// Write the list of permanently trusted keys, replacing the previous one.
    case storeTrust([TrustedKey])
    /// Write the list of permanent grants, replacing the previous one.
    case storeConsents([PermanentConsent])
}
