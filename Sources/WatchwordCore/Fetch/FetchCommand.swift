public import WatchwordProtocol

/// The next action of a fetch, whose outcome it waits for; or its end.
public indirect enum FetchCommand: Sendable, Equatable {
    /// Make this exchange; then `received` or `failed`.
    case transfer(TransferRequest)
    /// Ask this; then `answered`.
    case ask(Challenge, Respondent)
    /// Ask whether this may be used; then `confirmed`.
    case confirm(ConsentRequest)
    /// Ask this; then `consulted`.
    case consult(Consultation)
    /// Look for items of the keyring with these attributes; then `found`.
    case lookUp([[ExactText: ExactText]])
    /// Look for these logins in the netrc file; then `foundInNetrc`.
    case readNetrc(NetrcQuery)
    /// Nothing, until there is news of another fetch.
    case wait
    /// Ask the client for the request's body again; then `given`.
    case needBody
    /// The fetch is over; nothing follows for it.
    case finish(FetchResponse)
    /// The fetch is over; nothing follows for it.
    case fail(FetchFailure)

    /// Whether the fetch waits for what a person, or its client, says.
    var asksPeople: Bool {
        switch self {
        case .ask, .confirm, .consult: true
        case .transfer, .lookUp, .readNetrc, .wait, .needBody, .finish, .fail: false
        }
    }
}

/// An action that no fetch waits for.
public indirect enum FetchEffect: Sendable, Equatable {
    /// Tell the client of the fetch.
    case tell(FetchEvent)
    /// Write this record to the audit log.
    case note(AuditNote)
    /// Tell the client that supplied this login whether it was accepted.
    case judge(LoginVerdict)
    /// Put this into the keyring.
    case store(LoginCredential, SpacePattern)
    /// Take this out of the keyring, if the item still holds this value.
    case remove(item: String, LoginCredential)
    /// Say that what is stored has changed.
    case announce(CredentialChange)
    /// Close the connections of this identity.
    case closeConnections(ConnectionIdentity)
    /// Write down that these certificates are trusted for good, and no others.
    case keepTrust([TrustedKey])
    /// Write down that these grants last, and no others.
    case keepGrants([StandingGrant])
}

/// The next command of a fetch, and the events to report before it.
struct FetchStep: Sendable, Equatable {
    var events: [FetchEvent]
    var command: FetchCommand

    init(_ command: FetchCommand, events: [FetchEvent] = []) {
        self.events = events
        self.command = command
    }
}
