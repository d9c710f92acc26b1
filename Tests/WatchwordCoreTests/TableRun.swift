import WatchwordProtocol

@testable import WatchwordCore

/// Runs many fetches step by step: the command that each of them waits for is pending until a test answers it.
struct TableRun {
    var table: FetchTable
    var now = Duration.zero
    /// The command that each fetch currently waits for.
    private(set) var pending: [FetchID: FetchCommand] = [:]
    private(set) var results: [FetchID: FetchResponse] = [:]
    private(set) var failures: [FetchID: FetchFailure] = [:]
    /// The value of every `Authorization` field that was sent, in order.
    private(set) var sent: [String] = []
    private(set) var challenges: [(fetch: FetchID, challenge: Challenge, respondent: Respondent)] = []
    /// The waits that each fetch was notified of, in order.
    private(set) var waits: [FetchID: [FetchWait]] = [:]
    private(set) var effects: [FetchEffect] = []
    private(set) var notes: [AuditRecord] = []
    /// The fetch of each of `notes`.
    private(set) var noted: [FetchID?] = []
    private(set) var lookUps = 0
    /// Every request of each fetch, in order.
    private(set) var requests: [FetchID: [TransferRequest]] = [:]
    private(set) var closed: [ConnectionIdentity] = []
    /// The keys that were to be stored, each time.
    private(set) var kept: [[TrustedKey]] = []
    private(set) var keptConsents: [[PermanentConsent]] = []
    var proxy = ProxyRule()
    var schemes = SchemeRules()
    var usesNetrc = false
    /// The rules by which tokens are obtained.
    var tokens = OAuthRules([])

    init(isKeyringEnabled: Bool = false, sharing: FetchTable.Sharing = .user, proxy: ProxyEndpoint? = nil) {
        table = FetchTable(isKeyringEnabled: isKeyringEnabled, sharing: sharing)
        self.proxy = ProxyRule(endpoint: proxy)
    }

    private var environment: FetchEnvironment {
        FetchEnvironment(
            now: now, proxy: proxy,
            Boxed(FetchRules(schemes: schemes, usesNetrc: usesNetrc, tokens: tokens)),
            clientNonces: .fixed("nonce"))
    }

    mutating func fetch(
        _ url: String = "http://h/a/page", client: Int = 1, program: Int? = nil,
        subscription: Subscription? = Subscription(delivery: .request), subject: Subject? = nil,
        change: (inout FetchRunParams) -> Void = { _ in }, adapt: (inout FetchRequest) -> Void = { _ in }
    ) throws -> FetchID {
        let (text, userInfo) = URLText.split(secret(url))
        var params = FetchRunParams(url: text)
        params.userInfo = userInfo
        change(&params)
        var request = try FetchRequest(params, subscription: subscription)
        adapt(&request)
        let id = table.add(
            request, of: ClientTag(value: client), program: program.map { ProgramTag(value: $0) }, subject
        ).id
        take(table.handle(.started, of: id, environment))
        return id
    }

    // MARK: Pending commands

    func isWaiting(_ id: FetchID) -> Bool { pending[id] == .wait }

    func request(_ id: FetchID) -> TransferRequest? {
        if case .transfer(let request)? = pending[id] { request.value } else { nil }
    }

    func question(_ id: FetchID) -> Challenge? {
        if case .ask(let challenge, _)? = pending[id] { challenge } else { nil }
    }

    /// Returns the request for consent that the fetch waits for.
    func confirmation(_ id: FetchID) -> ConsentRequest? {
        if case .confirm(let request)? = pending[id] { request } else { nil }
    }

    func isLookingUp(_ id: FetchID) -> Bool {
        if case .lookUp? = pending[id] { true } else { false }
    }

    /// Returns the token that the fetch waits for.
    func tokenQuery(_ id: FetchID) -> TokenQuery? {
        if case .obtainToken(let query)? = pending[id] { query } else { nil }
    }

    var asking: [FetchID] { pending.keys.filter { question($0) != nil }.sorted { $0.number < $1.number } }

    var transferring: [FetchID] { pending.keys.filter { request($0) != nil }.sorted { $0.number < $1.number } }

    // MARK: Events

    mutating func respond(_ id: FetchID, _ status: Int, _ headers: (String, String)...) {
        receive(id, status, headers.map { HeaderField($0.0, $0.1) }) { _ in }
    }

    mutating func challenge(_ id: FetchID, _ scheme: String = "Basic realm=\"r\"") {
        respond(id, 401, ("WWW-Authenticate", scheme))
    }

    /// Challenges the fetch as its proxy.
    mutating func challengeFromProxy(_ id: FetchID, _ scheme: String = "Basic realm=\"way out\"") {
        receive(id, 407, [HeaderField("Proxy-Authenticate", scheme)]) { $0.isFromProxy = true }
    }

    mutating func receive(
        _ id: FetchID, _ status: Int, _ fields: [HeaderField], _ change: (inout TransferResponse) -> Void
    ) {
        var response = TransferResponse(status: status, headers: HeaderBlock(fields))
        change(&response)
        if let request = last(id) {
            let isReused = response.reusedConnection
            if Boxed(request).usesTunnel && !response.isFromProxy || isReused && request.handshake != nil {
                report(id, isReused ? .reusesConnection : .opensTunnel)
            }
        }
        take(table.handle(.received(response), of: id, environment))
    }

    /// Reports what happens in a transfer before its response, which `receive` does itself if it has not happened before.
    mutating func report(_ id: FetchID, _ event: TransferEvent) {
        take(table.handle(.transferReported(event), of: id, environment))
    }

    mutating func fail(_ id: FetchID, _ failure: TransferFailure = TransferFailure(.connectionLost, "detail")) {
        take(table.handle(.failed(failure), of: id, environment))
    }

    mutating func answer(_ id: FetchID, _ answer: ChallengeAnswer) {
        take(table.handle(.answered(answer), of: id, environment))
    }

    mutating func answer(_ id: FetchID, user: ExactText, _ password: String, _ persistence: Persistence = .forSession) {
        let credential = LoginCredential(user: user, password: secret(password), persistence: persistence)
        answer(id, .credential(.login(credential)))
    }

    mutating func unanswered(_ id: FetchID) { take(table.handle(.unanswered, of: id, environment)) }

    mutating func notAsked(_ id: FetchID, _ cause: Unanswered.NoRespondent) {
        take(table.handle(.notAsked(cause), of: id, environment))
    }

    mutating func consulted(_ id: FetchID, _ answer: Bool?) {
        take(table.handle(.consulted(answer), of: id, environment))
    }

    mutating func confirm(_ id: FetchID, _ consent: Consent?) {
        take(table.handle(.confirmed(consent), of: id, environment))
    }

    mutating func found(_ id: FetchID, _ items: [KeyringItem]) {
        take(table.handle(.found(.items(.success(items))), of: id, environment))
    }

    mutating func found(_ id: FetchID, failure: KeyringFailure.Kind) {
        take(table.handle(.found(.items(.failure(KeyringFailure(failure, "text")))), of: id, environment))
    }

    mutating func obtained(_ id: FetchID, _ outcome: TokenOutcome) {
        take(table.handle(.found(.token(outcome)), of: id, environment))
    }

    mutating func loggedIn(_ id: FetchID, _ token: LoginCredential) {
        take(table.handle(.loggedIn(token), of: id, environment))
    }

    mutating func foundUpstreams(_ id: FetchID) { take(table.handle(.foundUpstreams, of: id, environment)) }

    func isReadingNetrc(_ id: FetchID) -> Bool {
        if case .readNetrc? = pending[id] { true } else { false }
    }

    /// Answers the reading of the netrc file, or the running of a command, with these entries.
    mutating func foundInNetrc(_ id: FetchID, _ logins: [Netrc.Login], from source: CredentialSource = .netrc) {
        guard case .readNetrc(let query)? = pending[id] else { return }
        let found = logins.filter { query.includes(machine: $0.machine) }
        take(table.handle(.found(.logins(found, source)), of: id, environment))
    }

    mutating func abort(_ ids: [FetchID]) { take(table.abort(ids, FetchFailure(.cancelled, "gone"), environment)) }

    mutating func abort(_ id: FetchID) { take(table.abort([id], FetchFailure(.cancelled, "gone"), environment)) }

    mutating func expire(_ id: FetchID) { take(table.handle(.timePassed, of: id, environment)) }

    mutating func tick() { take(table.tick(environment)) }

    /// Answers every pending request like a server that accepts only bob with `password`.
    mutating func serve(password: String) {
        while let id = transferring.first {
            if request(id)?.authorization?.revealed == basic("bob", password) {
                respond(id, 200)
            } else {
                challenge(id)
            }
        }
    }

    mutating func take(_ orders: [FetchTable.Order]) {
        for order in orders {
            switch order {
            case .effect(.notify(.waiting(let wait)), let id?): waits[id, default: []].append(wait)
            case .effect(.notify, _), .effect(.report, _): break
            case .effect(.audit(let note), let id):
                notes.append(note)
                noted.append(id)
            case .effect(.closeConnections(let identity), _): closed.append(identity)
            case .effect(.storeTrust(let keys), _): kept.append(keys)
            case .effect(.storeConsents(let grants), _): keptConsents.append(grants)
            case .effect(let effect, _): effects.append(effect)
            case .command(let command, let id): take(command, for: id)
            }
        }
    }

    private mutating func take(_ command: FetchCommand, for id: FetchID) {
        pending[id] = command
        switch command {
        case .transfer(let request):
            requests[id, default: []].append(request.value)
            if let authorization = request.authorization { sent.append(authorization.revealed) }
        case .ask(let challenge, let respondent): challenges.append((id, challenge, respondent))
        case .lookUp: lookUps += 1
        case .finish(let response):
            results[id] = response
            pending[id] = nil
        case .fail(let failure):
            failures[id] = failure
            pending[id] = nil
        default: break
        }
    }
}

/// Returns an item as the keyring would return it.
func item(
    _ id: String, _ attributes: [ExactText: ExactText], _ password: String?
) -> KeyringItem {
    KeyringItem(
        id: "/items/\(id)", label: id, attributes: attributes, secret: password.map { secret($0) },
        isLocked: password == nil)
}

/// Returns the attributes with which Watchword stores a credential.
func exact(_ user: ExactText, realm: ExactText = "r", port: Int = 80) -> [ExactText: ExactText] {
    [
        "user": user, "server": "h", "protocol": "http", "port": "\(port)", "domain": realm, "authtype": "basic",
    ]
}

extension CredentialDescription {
    /// The number of a credential of the session.
    var number: Int { if case .session(let number) = id { number } else { -1 } }
}
