import WatchwordProtocol

@testable import WatchwordCore

/// Runs a fetch machine by hand: each call is an event, and what comes back is the next action.
struct MachineRun {
    var machine: FetchMachine
    var session = SessionCache()
    var now = Duration.zero
    private(set) var requests: [TransferRequest] = []
    private(set) var challenges: [Challenge] = []
    private(set) var events: [FetchStep.Event] = []
    private(set) var last: FetchStep.Action?

    init(
        _ url: String = "http://h/a/page", session: SessionCache = SessionCache(), isSubscribed: Bool = true,
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws {
        let (text, userInfo) = URLText.split(secret(url))
        var params = FetchRunParams(url: text)
        params.userInfo = userInfo
        change(&params)
        machine = FetchMachine(try FetchPlan(params, isSubscribed: isSubscribed))
        self.session = session
    }

    private var environment: FetchEnvironment { FetchEnvironment(now: now, makeClientNonce: { "client-nonce" }) }

    mutating func start() { take(machine.start(environment, session: &session)) }

    mutating func respond(_ status: Int, _ headers: (String, String)..., body: String = "") {
        let fields = headers.map { HeaderField($0.0, $0.1) }
        let response = TransferResponse(status: status, headers: fields, body: Array(body.utf8))
        take(machine.received(response, environment, session: &session))
    }

    mutating func challengeBasic(_ realm: String = "r", body: String = "no") {
        respond(401, ("WWW-Authenticate", "Basic realm=\"\(realm)\""), body: body)
    }

    mutating func challengeDigest(nonce: String, stale: Bool = false) {
        let text = "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"\(stale ? ", stale=TRUE" : "")"
        respond(401, ("WWW-Authenticate", text))
    }

    mutating func answer(_ answer: ChallengeAnswer) { take(machine.answered(answer, environment, session: &session)) }

    mutating func answer(user: String, _ password: String, _ persistence: Persistence = .forSession) {
        answer(
            .credential(.password(PasswordCredential(user: user, password: secret(password), persistence: persistence)))
        )
    }

    mutating func fail(_ kind: TransferFailure.Kind) { take(machine.failed(TransferFailure(kind, "detail"))) }

    mutating func abort(_ kind: ErrorKind) { take(machine.abort(FetchFailure(kind, "text"))) }

    private mutating func take(_ step: FetchStep) {
        events += step.events
        last = step.action
        switch step.action {
        case .transfer(let request): requests.append(request)
        case .ask(let challenge): challenges.append(challenge)
        case .finish, .fail: break
        }
    }

    /// What the `Authorization` fields of all requests so far said; `nil` for a request without one.
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

func basic(_ user: String, _ password: String) -> String {
    BasicScheme.authorization(for: PasswordCredential(user: user, password: secret(password))).revealed
}

func password(_ user: String, _ password: String, _ persistence: Persistence = .forSession) -> Credential {
    .password(PasswordCredential(user: user, password: secret(password), persistence: persistence))
}
