public import WatchwordProtocol

/// Obtains one token: finds the server, uses a stored grant, or lets a person log in. All fetches with the same purpose wait
/// for one machine.
///
/// Performs no I/O: each event returns the next commands.
public struct TokenMachine: Sendable {
    public enum Event: Sendable {
        case started
        /// The outcome of the last `send`.
        case replied(Result<OAuthReply, FetchFailure>)
        /// The result of the last `lookUp`.
        case found(OAuthGrant?)
        /// The last `store` has ended, successfully or not.
        case stored
        /// The outcome of the last `listen`: the host and port, or the reason why there is none.
        case listening(Result<String, FetchFailure>)
        /// A request of a browser: its method and target.
        case visited(method: String, target: String, number: Int)
        /// The time of the last `wake` has come.
        case timePassed
    }

    public enum Command: Sendable, Equatable {
        case send(OAuthRequest)
        /// Read the grant.
        case lookUp(OAuthGrant.Key)
        /// Store the grant, replacing the previous one.
        case store(OAuthGrant)
        case forget(OAuthGrant.Key)
        /// Accept requests of a browser of this user, at this port or any.
        case listen(port: Int?)
        /// Tell the waiting fetches that a person has to log in.
        case ask(TokenLogin)
        case answer(BrowserPage, number: Int)
        /// Report `timePassed` then, instead of at the time of the last `wake`.
        case wake(at: Duration)
        /// No command follows.
        case finish(TokenOutcome)
    }

    /// The clocks: monotonic time, and the time since 1970.
    public struct Clock: Sendable {
        let now: Duration
        let sinceEpoch: Duration

        public init(now: Duration, sinceEpoch: Duration) { (self.now, self.sinceEpoch) = (now, sinceEpoch) }
    }

    enum State: Sendable {
        case ready
        case findingIssuer(next: [FetchURL])
        case findingServer(issuer: String, next: [FetchURL])
        case lookingUp(tried: Secret?)
        case refreshing(OAuthGrant)
        case requesting
        case listening
        case registering(address: String)
        case waitingForBrowser(BrowserLogin)
        case exchanging(BrowserLogin, visit: Int)
        case requestingCode
        case waitingForDevice(DeviceLogin)
        case polling(DeviceLogin)
        case storing(TokenOutcome, visit: Int?)
        case finished
    }

    public let query: TokenQuery
    /// Whether a person may be asked; fetches that join later may allow it.
    public var mayAsk: Bool
    /// Whether the token service of a registry gets a login without a challenge.
    var offersLogin: Bool
    var state = State.ready
    var server: AuthorizationServer?
    var target: TokenTarget
    /// The grant whose renewal the server has refused without a reason. It is replaced by the next login.
    var grant: OAuthGrant?
    var registered: OAuthClient?
    /// Makes the proofs for tokens that are bound to a key; `nil` if the server does not offer that.
    var prover: TokenProver?
    /// Whether the server has not granted a required scope, and there is no grant in which this is stored.
    public internal(set) var isDenied = false
    /// The login that is under way, for fetches that join.
    public internal(set) var login: TokenLogin?

    /// The time before its end when a token is not sent any more, or less if it is short-lived.
    static let leeway = Duration.seconds(10)
    /// The longest time for a login in a browser.
    static let loginTime = Duration.seconds(600)

    public init(_ query: TokenQuery) {
        self.query = query
        (mayAsk, offersLogin) = (query.mayAsk, query.needsLogin)
        target = TokenTarget(resource: query.rule.resourceIndicator, scopes: query.scopes)
    }

    var rule: OAuthRule { query.rule }

    var client: OAuthClient? { registered ?? rule.clientID.map { OAuthClient(id: $0, secret: rule.clientSecret) } }

    // MARK: Events

    public mutating func handle(_ event: Event, _ clock: Clock) -> [Command] {
        do throws(FetchFailure) {
            if isTokenRequest, case .replied(.success(let reply)) = event,
                let again = prover?.again(after: reply, clock)
            {
                return [.send(again)]
            }
            let commands = try commands(for: event, clock)
            guard isTokenRequest else { return commands }
            return commands.map { command in
                guard case .send(let request) = command, prover != nil else { return command }
                return (prover?.prove(request, clock)).map(Command.send) ?? command
            }
        } catch {
            return fail(error)
        }
    }

    /// Whether the last request is one for a token.
    private var isTokenRequest: Bool {
        switch state {
        case .refreshing, .requesting, .exchanging, .polling: rule.flow != .registry
        case .ready, .findingIssuer, .findingServer, .lookingUp, .listening, .registering, .waitingForBrowser,
            .requestingCode, .waitingForDevice, .storing, .finished:
            false
        }
    }

    /// Prepares the proofs of a login, if the server offers to bind its tokens.
    mutating func prepareProver() {
        guard rule.usesDPoP, prover == nil, server?.offersDPoP == true else { return }
        prover = ProofKey.make().map(TokenProver.init)
    }

    private mutating func commands(for event: Event, _ clock: Clock) throws(FetchFailure) -> [Command] {
        switch (state, event) {
        case (.ready, .started): return try start()
        case (.findingIssuer(let next), .replied(let reply)): return try foundIssuer(reply, next)
        case (.findingServer(let issuer, let next), .replied(let reply)):
            return try foundServer(reply, issuer, next, clock)
        case (.lookingUp(let tried), .found(let grant)): return try found(grant, tried: tried, clock)
        case (.refreshing(let grant), .replied(let reply)): return try refreshed(grant, reply.get(), clock)
        case (.requesting, .replied(let reply)): return try received(reply.get(), clock)
        case (.listening, .listening(let address)): return try listening(at: address.get(), clock)
        case (.registering(let address), .replied(let reply)): return try registered(reply.get(), address, clock)
        case (.waitingForBrowser(let login), .visited(let method, let target, let number)):
            return try visited(method, target, number, login)
        case (.exchanging(let login, let visit), .replied(let reply)):
            return try exchanged(login, reply, visit: visit, clock)
        case (.requestingCode, .replied(let reply)): return try receivedCode(reply.get(), clock)
        case (.waitingForDevice(let login), .timePassed): return try poll(login, clock)
        case (.polling(let login), .replied(let reply)): return try polled(login, reply, clock)
        case (.storing(let outcome, let visit), .stored): return finish(outcome, visit: visit)
        case (.waitingForBrowser, .timePassed): throw expired
        case (_, .visited(_, _, let number)): return [.answer(.notFound, number: number)]
        case (_, .timePassed), (.finished, _): return []
        case (_, .started), (_, .replied), (_, .found), (_, .stored), (_, .listening): throw .unexpectedEvent
        }
    }

    var expired: FetchFailure {
        FetchFailure(
            .challengeTimedOut, "there was no login at \(DisplayURL.text(server?.issuer ?? "")) in time; try again")
    }

    /// Whether a refresh token was sent. The reply may contain the only valid one.
    public var isRenewing: Bool { if case .refreshing = state { true } else { false } }

    /// Whether a login is open whose browser returns to this port.
    public func listens(at port: Int?) -> Bool { port != nil && login != nil && rule.redirectPort == port }

    // MARK: Ends

    /// Asks a person, by a login that was prepared.
    mutating func ask(_ login: TokenLogin, wakeAt time: Duration) -> [Command] {
        self.login = login
        return [.ask(login), .wake(at: time)]
    }

    mutating func finish(_ outcome: TokenOutcome, visit: Int? = nil) -> [Command] {
        state = .finished
        login = nil
        return (visit.map { [.answer(.loggedIn, number: $0)] } ?? []) + [.finish(outcome)]
    }

    private mutating func fail(_ failure: FetchFailure) -> [Command] {
        var visit: Int?
        if case .exchanging(_, let number) = state { visit = number }
        state = .finished
        login = nil
        return (visit.map { [.answer(.failed, number: $0)] } ?? []) + [.finish(.failed(failure))]
    }
}

/// The answer to a browser. The pages repeat nothing of a request.
public enum BrowserPage: Sendable, Equatable {
    /// Go to the login page.
    case redirect(to: String)
    case loggedIn
    case failed
    case notFound
    /// The address of the login was opened before.
    case used

    public var status: Int {
        switch self {
        case .redirect: 303
        case .loggedIn: 200
        case .failed: 400
        case .notFound: 404
        case .used: 410
        }
    }

    public var text: String {
        switch self {
        case .redirect: ""
        case .loggedIn: "You are logged in. You can close this page."
        case .failed: "The login has failed. The program that asked for it says why. You can close this page."
        case .notFound: "This page belongs to no login. You can close it."
        case .used:
            "This address works once, and was opened before. Finish the login there, or let the program ask again."
        }
    }
}
