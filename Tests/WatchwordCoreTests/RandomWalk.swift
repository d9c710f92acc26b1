import WatchwordProtocol

@testable import WatchwordCore

/// A world of fetches, servers, clients and a keyring in which things happen in random order. After each event the
/// promises of the broker are checked; what breaks one is in `problem`.
struct RandomWalk {
    private struct Fetch {
        let host: String
        let client: Int
        let sharesStorage: Bool
        let namesUser: Bool
        /// What the server has refused to this fetch.
        var refused: Set<String> = []
        var steps = 0
    }

    private static let hosts = ["a", "b", "c"]
    /// Far above what twenty authentication rounds with their questions can come to.
    private static let longestFetch = 400

    private var table = FetchTable(isKeyringEnabled: true)
    private var random: SeededGenerator
    private var now = Duration.zero
    private var fetches: [FetchID: Fetch] = [:]
    private var pending: [FetchID: FetchTable.Command] = [:]
    /// When each request was sent.
    private var sentAt: [FetchID: Duration] = [:]
    private var passwords: [String: Int] = [:]
    /// By host, the credentials that were ever given for it.
    private var meant: [String: Set<String>] = [:]
    /// Those that were under way while the broker was locked: they shared with nobody.
    private var isPrivate: Set<FetchID> = []
    /// Credentials that a server has accepted at some time.
    private var accepted: Set<String> = []
    private(set) var started = 0
    private(set) var ended = 0
    private(set) var reached: Set<String> = []
    private(set) var problem: String?
    private(set) var events = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        for host in Self.hosts { passwords[host] = 0 }
    }

    mutating func run(events count: Int) {
        while events < count, problem == nil { step() }
    }

    /// Answers everything until nobody waits for anything.
    mutating func drain() {
        var left = 100_000
        while problem == nil, let id = anyActive() {
            happen(to: id)
            left -= 1
            if left == 0 { problem = "some fetches never end" }
        }
        if problem == nil, !pending.isEmpty { problem = "\(pending.count) fetches wait for nobody" }
        if problem == nil, started != ended { problem = "\(started) fetches began, \(ended) ended" }
        if problem == nil, table.count + table.waitingCount > 0 { problem = "the table keeps fetches that are over" }
    }

    private var environment: FetchEnvironment { FetchEnvironment(now: now, makeClientNonce: { "nonce" }) }

    private mutating func chance(_ one: Int, in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) < one }

    /// In an order that is the same in every run.
    private mutating func anyActive() -> FetchID? {
        let active = pending.filter { $0.value != .wait }.keys.sorted { $0.number < $1.number }
        return active.randomElement(using: &random)
    }

    private mutating func anyFetch() -> FetchID? {
        pending.keys.sorted { $0.number < $1.number }.randomElement(using: &random)
    }

    private mutating func step() {
        let choice = Int.random(in: 0..<100, using: &random)
        if pending.count < 3 || (choice < 20 && pending.count < 40) {
            start()
        } else if choice < 24, let id = anyFetch() {
            events += 1
            take(table.abort(id, FetchFailure(.cancelled, "gone"), environment), after: id)
        } else if choice < 26 {
            events += 1
            now += .seconds(Int.random(in: 0...300, using: &random))
            take(table.tick(environment), after: nil)
        } else if choice < 27 {
            events += 1
            shake()
        } else if let id = anyActive() {
            happen(to: id)
        } else {
            problem = "\(pending.count) fetches wait for nobody"
        }
    }

    /// What happens to all: the session is forgotten, the broker locked, a password changed.
    private mutating func shake() {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: take(table.clearSession(origin: nil).orders, after: nil)
        case 1:
            isPrivate.formUnion(fetches.keys)
            take(table.lock(), after: nil)
        case 2, 3: table.unlock()
        default: passwords[Self.hosts.randomElement(using: &random) ?? "a", default: 0] += 1
        }
    }

    private mutating func start() {
        events += 1
        let host = Self.hosts.randomElement(using: &random) ?? "a"
        let client = Int.random(in: 1...5, using: &random)
        var params = FetchRunParams(url: "http://\(host)/x/\(Int.random(in: 0..<3, using: &random))")
        params.useStorage = !chance(1, in: 8)
        params.preemptive = !chance(1, in: 8)
        let interactions: [Interaction] = [.ownClient, .ownClient, .agent, .none]
        params.interaction = interactions.randomElement(using: &random) ?? .none
        if chance(1, in: 6) { params.credential = credential(for: host) }
        let consults = chance(1, in: 6)
        let subscription = Subscription(
            delivery: .request, mode: chance(1, in: 5) ? .everything : .classic, asksCanAuthenticate: consults,
            asksUseStorage: consults)
        guard let plan = try? FetchPlan(params, subscription: chance(1, in: 5) ? nil : subscription) else { return }
        let id = table.add(plan, of: ClientTag(value: client))
        started += 1
        fetches[id] = Fetch(
            host: host, client: client, sharesStorage: params.useStorage && !consults,
            namesUser: params.credential != nil)
        if table.isLocked { isPrivate.insert(id) }
        take(table.start(id, environment), after: id)
    }

    /// Passwords say for which server they are, so that one that goes astray is noticed.
    private mutating func credential(for host: String) -> LoginCredential {
        let version = chance(2, in: 3) ? passwords[host] ?? 0 : Int.random(in: 0...3, using: &random)
        let persistence = Persistence.allCases.randomElement(using: &random) ?? .none
        meant[host, default: []].insert(basic("bob", "\(host)-\(version)"))
        return LoginCredential(user: "bob", password: secret("\(host)-\(version)"), persistence: persistence)
    }

    private mutating func happen(to id: FetchID) {
        guard let command = pending[id], let fetch = fetches[id] else { return }
        events += 1
        fetches[id]?.steps += 1
        if fetch.steps > Self.longestFetch { problem = "\(id) does not end" }
        switch command {
        case .transfer(let request): serve(request, for: id, fetch)
        case .ask: take(table.answered(answer(for: fetch.host), for: id, environment), after: id)
        case .consult: take(table.consulted(chance(2, in: 3), for: id, environment), after: id)
        case .lookUp: take(table.found(lookUp(fetch.host), for: id, environment), after: id)
        default: break
        }
    }

    private mutating func answer(for host: String) -> ChallengeAnswer {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: .cancel
        case 1: .proceed
        case 2, 3: .useDefault
        case 4: .reject
        case 5: .credential(.proposed)
        default: .credential(.login(credential(for: host)))
        }
    }

    private mutating func lookUp(_ host: String) -> Result<[KeyringItem], KeyringFailure> {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .failure(KeyringFailure(.timedOut, "silent"))
        case 1: return .failure(KeyringFailure(.locked, "locked"))
        case 2, 3: return .success([])
        default:
            let stored = credential(for: host)
            var attributes = exact("bob")
            attributes["server"] = host
            return .success([
                KeyringItem(
                    id: "/\(host)", label: "", attributes: attributes, secret: stored.secret, isLocked: false,
                    created: 0)
            ])
        }
    }

    // MARK: The servers

    private mutating func serve(_ request: TransferRequest, for id: FetchID, _ fetch: Fetch) {
        if chance(1, in: 40) {
            return take(table.failed(TransferFailure(.timedOut, ""), for: id, environment), after: id)
        }
        let sent = request.authorization?.revealed
        let right = basic("bob", "\(fetch.host)-\(passwords[fetch.host] ?? 0)")
        if let sent {
            guard isMeant(sent, for: fetch.host) else {
                problem = "a credential of another server went to \(fetch.host)"
                return
            }
            if sent == right { accepted.insert(fetch.host + sent) }
        }
        let status = chance(1, in: 30) ? 503 : sent == right ? 200 : 401
        if status == 401, let sent, !fetches[id]!.refused.insert(sent).inserted {
            problem = "\(id) has sent again what was refused to it"
        }
        var headers = [HeaderField("WWW-Authenticate", "Basic realm=\"r\"")]
        if chance(1, in: 30) { headers = [] }
        take(
            table.received(TransferResponse(status: status, headers: headers), for: id, environment), after: id)
    }

    private mutating func isMeant(_ authorization: String, for host: String) -> Bool {
        meant[host, default: []].contains(authorization)
    }

    // MARK: Promises

    /// - Parameter id: the fetch whose event that was: only it, and those that waited for it, may get orders.
    private mutating func take(_ orders: [FetchTable.Order], after id: FetchID?) {
        if let id { pending[id] = nil }
        for order in orders {
            guard let fetch = order.fetch else { continue }
            reached.insert(order.command.name)
            if case .tell = order.command { continue }
            guard fetches[fetch] != nil else {
                problem = "\(fetch) is over, and got \(order.command.name)"
                return
            }
            if let before = pending[fetch], before != .wait, order.command.name != "fail" {
                problem = "\(fetch) waits for \(before.name), and got \(order.command.name)"
                return
            }
            switch order.command {
            case .finish, .fail:
                pending[fetch] = nil
                sentAt[fetch] = nil
                fetches[fetch] = nil
                ended += 1
            default:
                pending[fetch] = order.command
                if case .transfer = order.command { sentAt[fetch] = now }
            }
        }
        if let id, fetches[id] != nil, pending[id] == nil { problem = "\(id) waits for nothing" }
        checkOnce()
    }

    /// Rules 20 and 22: one question and one untried credential at a time.
    private mutating func checkOnce() {
        var questions: Set<String> = []
        var trials: Set<String> = []
        for (id, command) in pending {
            guard let fetch = fetches[id] else { continue }
            switch command {
            case .ask where fetch.sharesStorage && !fetch.namesUser && !isPrivate.contains(id):
                if !questions.insert(fetch.host).inserted { problem = "two questions about \(fetch.host)" }
            case .transfer(let request):
                guard let sent = request.authorization?.revealed, !accepted.contains(fetch.host + sent),
                    now - (sentAt[id] ?? now) < Limits.verdictWait
                else { continue }
                if !trials.insert(fetch.host + sent).inserted {
                    problem = "a password of \(fetch.host) is tried twice at once"
                }
            default: break
            }
        }
    }

}

extension FetchTable.Command {
    var name: String {
        switch self {
        case .transfer: "transfer"
        case .ask(_, .client): "ask the client"
        case .ask(_, .agents): "ask the agents"
        case .consult: "consult"
        case .lookUp: "lookUp"
        case .wait: "wait"
        case .tell: "tell"
        case .finish: "finish"
        case .fail: "fail"
        case .store: "store"
        case .remove: "remove"
        case .announce: "announce"
        case .closeConnections: "closeConnections"
        case .keepTrust: "keepTrust"
        }
    }
}
