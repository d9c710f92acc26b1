import WatchwordProtocol

@testable import WatchwordCore

/// Runs one fetch step by step: each call is an event, and its result is the next action.
struct MachineRun {
    var table: FetchTable
    var now = Duration.zero
    private(set) var requests: [TransferRequest] = []
    private(set) var challenges: [Challenge] = []
    private(set) var respondents: [Respondent] = []
    private(set) var consultations: [Consultation] = []
    private(set) var events: [FetchEvent] = []
    private(set) var effects: [FetchEffect] = []
    private(set) var notes: [AuditRecord] = []
    private(set) var verdicts: [LoginVerdict] = []
    private(set) var last: FetchCommand?
    /// The items of the keyring, which answers every lookup at once; `nil` if it must not be searched.
    var keyring: [KeyringItem]?
    private(set) var lookUps = 0
    /// The rules by which tokens are obtained.
    var tokens = OAuthRules([])
    private(set) var tokenQueries: [TokenQuery] = []
    /// The entries of the netrc file; `nil` if the configuration names none.
    var netrc: [Netrc.Login]?
    private(set) var netrcReadings = 0
    private let id: FetchID

    init(
        _ url: String = "http://h/a/page", session: SessionCache = SessionCache(), isSubscribed: Bool = true,
        subscription: Subscription = Subscription(delivery: .request), keyring: [KeyringItem]? = nil,
        keepsTarget: Bool = false,
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws {
        let (text, userInfo) = URLText.split(secret(url))
        var params = FetchRunParams(url: text)
        params.userInfo = userInfo
        change(&params)
        table = FetchTable(isKeyringEnabled: keyring != nil)
        self.keyring = keyring
        table.context.session = session
        id =
            table.add(
                try FetchRequest(
                    params, subscription: isSubscribed ? subscription : nil,
                    url: keepsTarget ? FetchURL(params.url, keepsTarget: true) : nil),
                of: ClientTag(value: 1)
            ).id
    }

    var session: SessionCache {
        get { table.context.session }
        set { table.context.session = newValue }
    }

    private var environment: FetchEnvironment {
        FetchEnvironment(
            now: now, Boxed(FetchRules(usesNetrc: netrc != nil, tokens: tokens)), clientNonces: .fixed("client-nonce"))
    }

    mutating func start() { take(table.handle(.started, of: id, environment)) }

    mutating func respond(_ status: Int, _ headers: (String, String)..., body: String = "") {
        let fields = headers.map { HeaderField($0.0, $0.1) }
        let response = TransferResponse(status: status, headers: HeaderBlock(fields), body: Array(body.utf8))
        take(table.handle(.received(response), of: id, environment))
    }

    mutating func respond(_ response: TransferResponse, change: (inout TransferResponse) -> Void) {
        var response = response
        change(&response)
        take(table.handle(.received(response), of: id, environment))
    }

    mutating func challengeBasic(_ realm: ExactText = "r", body: String = "no") {
        respond(401, ("WWW-Authenticate", "Basic realm=\"\(realm)\""), body: body)
    }

    mutating func challengeDigest(nonce: ExactText, stale: Bool = false) {
        let text = "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"\(stale ? ", stale=TRUE" : "")"
        respond(401, ("WWW-Authenticate", text))
    }

    mutating func answer(_ answer: ChallengeAnswer) { take(table.handle(.answered(answer), of: id, environment)) }

    mutating func answer(user: ExactText, _ password: String, _ persistence: Persistence = .forSession) {
        answer(
            .credential(.login(LoginCredential(user: user, password: secret(password), persistence: persistence)))
        )
    }

    mutating func obtained(_ outcome: TokenOutcome) { take(table.handle(.found(.token(outcome)), of: id, environment)) }

    mutating func unanswered() { take(table.handle(.unanswered, of: id, environment)) }

    mutating func consulted(_ answer: Bool?) { take(table.handle(.consulted(answer), of: id, environment)) }

    mutating func fail(_ kind: TransferFailure.Kind) {
        take(table.handle(.failed(TransferFailure(kind, "detail")), of: id, environment))
    }

    mutating func abort(_ kind: ErrorKind) { take(table.abort([id], FetchFailure(kind, "text"), environment)) }

    private mutating func take(_ orders: [FetchTable.Order]) {
        for order in orders {
            switch order {
            case .effect(.notify(let event), _): events.append(event)
            case .effect(.audit(let note), _): notes.append(note)
            case .effect(.report(let verdict), _): verdicts.append(verdict)
            case .effect(let effect, _): effects.append(effect)
            case .command(let command, _): take(command)
            }
        }
    }

    private mutating func take(_ command: FetchCommand) {
        switch command {
        case .lookUp:
            lookUps += 1
            take(table.handle(.found(.items(.success(keyring ?? []))), of: id, environment))
        case .readNetrc(let query):
            netrcReadings += 1
            let logins = (netrc ?? []).filter { query.includes(machine: $0.machine) }
            take(table.handle(.found(.logins(logins, .netrc)), of: id, environment))
        case .transfer(let request): requests.append(request.value)
        case .ask(let challenge, .client), .ask(let challenge, .handler):
            challenges.append(challenge)
            respondents.append(challenge.isForHandler ? .handler : .client)
        case .ask(let challenge, .agents):
            respondents.append(.agents)
            guard asksAgents else { return take(table.handle(.notAsked(.noAgent), of: id, environment)) }
            challenges.append(challenge)
        case .consult(let consultation): consultations.append(consultation)
        case .obtainToken(let query): tokenQueries.append(query)
        case .wait, .needBody, .confirm, .findUpstreams, .finish, .fail: break
        }
        if !command.isAside { last = command }
    }

    /// Whether there are agents; if not, a challenge for them is answered at once with `noAgent`.
    var asksAgents = false

    /// The `Authorization` fields of all requests so far; `nil` for a request without one.
    var authorizations: [String?] { requests.map { $0.authorization?.revealed } }

    var result: FetchResponse? {
        if case .finish(let response)? = last { response } else { nil }
    }

    var failure: ErrorKind? {
        if case .fail(let failure)? = last { failure.kind } else { nil }
    }

    var isAsking: Bool {
        if case .ask? = last { true } else { false }
    }
}

extension FetchCommand {
    /// Whether `MachineRun` answers the command itself, so that tests do not observe it as the last command.
    var isAside: Bool {
        switch self {
        case .lookUp, .readNetrc: true
        default: false
        }
    }
}

func basic(_ user: ExactText, _ password: String) -> String {
    BasicScheme.authorization(for: LoginCredential(user: user, password: secret(password))).revealed
}

func password(_ user: ExactText, _ password: String, _ persistence: Persistence = .forSession) -> Credential {
    .login(login(user, password, persistence))
}

func login(_ user: ExactText, _ password: String, _ persistence: Persistence = .forSession) -> LoginCredential {
    LoginCredential(user: user, password: secret(password), persistence: persistence)
}

/// A server on this machine.
let here = Challenger.server(Origin(scheme: .http, host: "localhost", port: 80))

extension OfferList {
    init(_ challenges: [SchemeChallenge], allowed: [AuthenticationMethod]?) {
        self.init(challenges, by: here, allowed: allowed, SchemeRules())
    }
}

extension AnswerableChallenge {
    init?(_ challenge: SchemeChallenge) { self.init(challenge, at: here, SchemeRules()) }
}
