import WatchwordProtocol

@testable import WatchwordCore

/// A simulation of fetches, servers, clients and a keyring, with events in random order. After each event the
/// invariants of the broker are checked; `problem` describes the first violation.
struct RandomWalk {
    struct Fetch {
        let client: Int
        /// Becomes false when a question about a certificate stays unanswered: then the fetch may use no stored credential.
        var sharesStorage: Bool
        let namesUser: Bool
        let proxy: ProxyChoice
        /// The pinned server key, if any.
        let pin: [UInt8]?
        /// Whether the fetch shares nothing with other clients: it has an exception, or a proxy of its own.
        var isApart: Bool
        /// Whether the fetch decides about every certificate itself.
        var pinsAlways = false
        /// The credentials that servers and proxies have refused to this fetch.
        var refused: Set<String> = []
        /// The numbers of the connections that only this fetch may have.
        var identities: Set<Int> = []
        /// The subject of the client, if it needs consent.
        var subject: Subject?
        /// The uses that a person has consented to.
        var consented: Set<ConsentBook.Use> = []
        var steps = 0
    }

    /// The origins of servers, each with its offered schemes and the problems of its certificate.
    static let places: [(name: String, offers: String, problems: Set<ServerTrustFacts.Problem>)] = [
        ("http://a", "Basic realm=\"r\"", []), ("http://b", "NTLM, Basic realm=\"r\"", []),
        ("http://c", "Basic realm=\"r\"", []), ("https://a", "Negotiate, Basic realm=\"r\"", []),
        ("https://b", "NTLM, Basic realm=\"r\"", [.selfSigned]),
        ("https://c", "Bearer realm=\"r\", Hoba realm=\"r\", Basic realm=\"r\"", []),
    ]
    /// The subjects of some clients: a sandbox, and an unidentified peer.
    static let subjects = [4: Subject(.flatpak, "org.x", isSandboxed: true), 5: Subject.unknown]
    /// A limit far above the steps of twenty authentication rounds with their questions.
    static let longestFetch = 400

    var table = FetchTable(isKeyringEnabled: true)
    var random: SeededGenerator
    var now = Duration.zero
    var fetches: [FetchID: Fetch] = [:]
    var pending: [FetchID: FetchCommand] = [:]
    /// The requests with a login that are under way, the oldest first, as far as no later one with the same login was accepted
    /// and the login was not refused.
    var unproven: [(fetch: FetchID, trial: String, sentAt: Duration)] = []
    /// How many requests with each login may be unproven at the same time, unless verdicts take long.
    var windows: [String: Int] = [:]
    var schemes = SchemeRules()
    var proxy = ProxyRule()
    /// The numbers of the current passwords, by server or proxy; `keys` contains the keys of the servers.
    var passwords: [String: Int] = [:]
    var keys: [String: UInt8] = [:]
    /// The keys that were ever accepted, and those that were for more than one fetch.
    var trusted: [String: Set<UInt8>] = [:]
    var remembered: [String: Set<UInt8>] = [:]
    /// The authentication state of the connections of each number.
    var connectionKeys: [Int: String] = [:]
    var closed: Set<Int> = []
    /// All credentials and certificates that were ever provided for a server or a proxy.
    var meant: [String: Set<String>] = [:]
    /// The fetches that were under way while the broker was locked: they shared with no other fetch.
    var isPrivate: Set<FetchID> = []
    /// When a server has last accepted each credential.
    var accepted: [String: Duration] = [:]
    var started = 0
    var ended = 0
    var reached: Set<String> = []
    var problem: String?
    var events = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        if let listed = try? ["a", "b", "p"].map({ try HostPattern($0) }), let direct = try? HostPattern("c") {
            schemes = SchemeRules(negotiateHosts: listed, ntlmHosts: listed)
            proxy = Self.upstreams(exceptions: [direct], failover: [listed[1]])
        }
    }

    mutating func run(events count: Int) {
        while events < count, problem == nil { step() }
    }

    /// Answers everything until no fetch waits for an event.
    mutating func drain() {
        var left = 100_000
        while problem == nil, !pending.isEmpty {
            if let id = anyActive() { happen(to: id) } else { passTime() }
            left -= 1
            if left == 0 { problem = "some fetches never end" }
        }
        if problem == nil, !pending.isEmpty { problem = "\(pending.count) fetches wait for no event" }
        if problem == nil, started != ended { problem = "\(started) fetches began, \(ended) ended" }
        if problem == nil, table.count + table.waitingCount > 0 { problem = "the table keeps fetches that are over" }
    }

    var environment: FetchEnvironment {
        FetchEnvironment(
            now: now, proxy: proxy, Boxed(FetchRules(schemes: schemes, usesNetrc: true)),
            clientNonces: .fixed("nonce"))
    }

    mutating func chance(_ one: Int, in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) < one }

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
            take(table.abort([id], FetchFailure(.cancelled, "gone"), environment), after: id)
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
            passTime()
        }
    }

    /// Lets those continue that wait only because a request has ended before its response.
    private mutating func passTime() {
        now += Limits.lostVerdictMemory
        take(table.tick(environment), after: nil)
        if anyActive() == nil, !pending.isEmpty { problem = "\(pending.count) fetches wait for no event" }
    }

    /// Makes an event that affects all fetches: the session is cleared, the broker locked, a password changed.
    private mutating func shake() {
        let place = Self.places.randomElement(using: &random)?.name ?? ""
        switch Int.random(in: 0..<8, using: &random) {
        case 0: take(table.clearSession().orders, after: nil)
        case 1:
            isPrivate.formUnion(fetches.keys)
            take(table.lock(), after: nil)
        case 2, 3: table.unlock()
        case 4 where chance(1, in: 2): take(table.revokeGrants(number: nil, subject: nil).orders, after: nil)
        case 4: keys[place, default: 1] += 1
        case 5: passwords[chance(1, in: 2) ? "p" : "r", default: 0] += 1
        default: passwords[place, default: 0] += 1
        }
    }

    private mutating func start() {
        events += 1
        let place = Self.places.randomElement(using: &random)?.name ?? ""
        let client = Int.random(in: 1...5, using: &random)
        var params = FetchRunParams(url: "\(place)/x/\(Int.random(in: 0..<3, using: &random))")
        params.useStorage = !chance(1, in: 8)
        params.preemption = chance(1, in: 8) ? .never : chance(1, in: 8) ? .always : .session
        let interactions: [Interaction] = [.ownClient, .ownClient, .agent, .none]
        params.interaction = interactions.randomElement(using: &random) ?? .none
        if chance(1, in: 6) { params.credential = credential(for: place) }
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: params.proxy = .none
        case 2: params.proxy = .named(NamedProxy(url: "http://q:3128", credential: credential(for: "q")))
        case 3: params.proxy = .named(NamedProxy(url: "http://q:3128"))
        default: break
        }
        if chance(1, in: 16) { params.tls.certificate = certificate(for: place) }
        if chance(1, in: 16) { params.tls.trust = .always }
        if chance(1, in: 16) { params.tls.pin = trust(keys[place] ?? 1, .none, at: place) }
        let consults = chance(1, in: 6)
        let subscription = Subscription(
            delivery: .request, mode: chance(1, in: 3) ? .everything : .classic, asksCanAuthenticate: consults,
            asksUseStorage: consults)
        if params.interaction == .ownClient, chance(1, in: 4) {
            params.handler = Subscription(delivery: .request, mode: chance(1, in: 2) ? .everything : .classic)
        }
        guard let request = try? FetchRequest(params, subscription: chance(1, in: 5) ? nil : subscription) else {
            return
        }
        let subject = Self.subjects[client]
        let id = table.add(request, of: ClientTag(value: client), subject).id
        started += 1
        fetches[id] = Fetch(
            client: client, sharesStorage: params.useStorage && !consults, namesUser: params.credential != nil,
            proxy: params.proxy, pin: request.pinnedKey,
            isApart: request.pinnedKey != nil || request.proxyName == "q" || subject != nil)
        fetches[id]?.subject = subject
        if params.tls.trust == .always { fetches[id]?.pinsAlways = true }
        if table.isLocked { isPrivate.insert(id) }
        take(table.handle(.started, of: id, environment), after: id)
    }

    private mutating func happen(to id: FetchID) {
        guard let command = pending[id], let fetch = fetches[id] else { return }
        events += 1
        fetches[id]?.steps += 1
        if fetch.steps > Self.longestFetch { problem = "\(id) does not end" }
        switch command {
        case .transfer(let request): serve(request.value, for: id)
        case .ask where chance(1, in: 12):
            let orders = table.handle(.unanswered, of: id, environment)
            checkSilence(orders, of: id)
            take(orders, after: id)
        case .ask(let challenge, _):
            take(table.handle(.answered(answer(challenge)), of: id, environment), after: id)
        case .confirm(let request): confirm(request, for: id)
        case .consult:
            let answer = chance(1, in: 8) ? nil : chance(2, in: 3)
            take(table.handle(.consulted(answer), of: id, environment), after: id)
        case .lookUp(let queries): take(table.handle(.found(.items(lookUp(queries))), of: id, environment), after: id)
        case .findUpstreams(let origin): findUpstreams(of: origin, for: id)
        case .readNetrc(let query):
            take(table.handle(.found(.logins(readNetrc(query), .netrc)), of: id, environment), after: id)
        default: break
        }
    }

    // MARK: Respondents

    private mutating func confirm(_ request: ConsentRequest, for id: FetchID) {
        let consent = (Consent.allCases + [nil]).randomElement(using: &random) ?? nil
        if let consent, consent != .no {
            fetches[id]?.consented.insert(ConsentBook.Use(space: request.space, user: request.user))
        }
        take(table.handle(.confirmed(consent), of: id, environment), after: id)
    }

    /// Returns a password that contains the name of its server, so that misdirected passwords are detected.
    private mutating func secret(for place: String) -> String {
        "\(place)-\(chance(2, in: 3) ? passwords[place] ?? 0 : Int.random(in: 0...3, using: &random))"
    }

    private mutating func credential(for place: String) -> LoginCredential {
        let text = secret(for: place)
        meant[place, default: []].formUnion([basic("bob", text), "NTLM bob \(text)"])
        return login("bob", text, Persistence.allCases.randomElement(using: &random) ?? .none)
    }

    private mutating func certificate(for place: String) -> CertificateCredential {
        let name = "\(place)-\(Int.random(in: 0...3, using: &random))"
        meant[place, default: []].insert("/\(name).pem")
        return WatchwordCoreTests.certificate(name, Persistence.allCases.randomElement(using: &random) ?? .none)
    }

    private mutating func trust(_ key: UInt8, _ persistence: Persistence, at place: String) -> TrustCredential {
        trusted[place, default: []].insert(key)
        if persistence != .none { remembered[place, default: []].insert(key) }
        return TrustCredential(spkiSha256: Hexadecimal.text(hash(key)), persistence: persistence)
    }

    private mutating func answer(_ challenge: Challenge) -> ChallengeAnswer {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: .cancel
        case 1: .proceed
        case 2, 3: .useDefault
        case 4: .reject
        case 5: .credential(.proposed)
        default: .credential(credential(answering: challenge))
        }
    }

    private mutating func credential(answering challenge: Challenge) -> Credential {
        let space = challenge.protectionSpace
        let place = space.proxyType == nil ? "\(space.scheme)://\(space.host)" : space.host.string
        switch space.authenticationMethod {
        case .serverTrust:
            guard case .serverTrust(let facts)? = challenge.connection, let key = facts.chain[0].spkiSha256.first else {
                problem = "a question without a certificate"
                return .proposed
            }
            let persistence = Persistence.allCases.randomElement(using: &random) ?? .none
            return .trust(
                chance(1, in: 12)
                    ? TrustCredential(spkiSha256: Hexadecimal.text(hash(99))) : trust(key, persistence, at: place))
        case .clientCertificate: return .certificate(certificate(for: place))
        case .bearer:
            let text = secret(for: place)
            meant[place, default: []].insert("Bearer \(text)")
            let persistence = Persistence.allCases.randomElement(using: &random) ?? .none
            return .login(
                LoginCredential(form: .token, secret: WatchwordCoreTests.secret(text), persistence: persistence))
        case .other:
            let text = secret(for: place)
            meant[place, default: []].insert("Hoba \(text)")
            return .login(
                LoginCredential(form: .header(scheme: "hoba", state: nil), secret: WatchwordCoreTests.secret(text)))
        default: return .login(credential(for: place))
        }
    }

    private mutating func lookUp(_ queries: [[ExactText: ExactText]]) -> Result<[KeyringItem], KeyringFailure> {
        // The queries for a proxy have no `service`.
        guard let host = queries.first?["server"], let service = queries.dropFirst().first?["service"] else {
            return .success([])
        }
        let scheme = service.hasPrefix("https:") ? "https" : "http"
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .failure(KeyringFailure(.timedOut, "silent"))
        case 1: return .failure(KeyringFailure(.locked, "locked"))
        case 2, 3: return .success([])
        default:
            let text = secret(for: "\(scheme)://\(host)")
            meant["\(scheme)://\(host)", default: []].insert(basic("ring", text))
            var attributes = exact("ring", port: scheme == "http" ? 80 : 443)
            attributes["server"] = host
            attributes["protocol"] = ExactText(scheme)
            return .success([item(host.string, attributes, text)])
        }
    }

    private mutating func readNetrc(_ query: NetrcQuery) -> [Netrc.Login] {
        let host = query.origin.host.string
        let place = "\(query.origin.scheme.rawValue)://\(host)"
        guard place.hasPrefix("https") || Loopback.isLoopback(query.origin.host) else {
            problem = "the netrc file is read for a connection without encryption"
            return []
        }
        guard chance(2, in: 3) else { return [] }
        let text = secret(for: place)
        meant[place, default: []].insert(basic("net", text))
        return [Netrc.Login(machine: host, user: "net", password: WatchwordCoreTests.secret(text))]
    }

    // MARK: Servers and proxies

    private mutating func serve(_ request: TransferRequest, for id: FetchID) {
        let place = "\(request.url.origin.scheme.rawValue)://\(request.url.origin.host)"
        if chance(1, in: 40) { return fail(id, TransferFailure(.timedOut, "")) }
        if let name = request.proxy?.host {
            let sent = request.proxyLogin
            if name != "q", chance(1, in: 30) { return fail(id, unreachableProxy()) }
            if sent != basic("bob", "\(name)-\(passwords[name] ?? 0)"), name != "q" || sent != nil {
                refuse(sent, by: name, id)
                return respond(id, 407, "Proxy-Authenticate", "Basic realm=\"out\"", isFromProxy: true)
            }
            if Boxed(request).usesTunnel {
                let event: TransferEvent = chance(1, in: 4) ? .reusesConnection : .opensTunnel
                if event == .reusesConnection, request.handshake != nil {
                    unproven.removeAll { $0.fetch == id && ["Negotiate", "NTLM"].contains(where: $0.trial.contains) }
                }
                take(table.handle(.transferReported(event), of: id, environment), after: id, isOver: false)
            }
        }
        guard let offers = Self.places.first(where: { $0.name == place }) else {
            problem = "astray"
            return
        }
        if request.url.origin.scheme == .https, let failure = connect(request, place, offers.problems, id) {
            return fail(id, failure)
        }
        answer(request, at: place, offers.offers, id)
    }

    /// Returns the failure of the TLS handshake; `nil` if it succeeds.
    private mutating func connect(
        _ request: TransferRequest, _ place: String, _ problems: Set<ServerTrustFacts.Problem>, _ id: FetchID
    ) -> TransferFailure? {
        let key = keys[place] ?? 1
        if request.trustedKey.map({ $0 != key }) ?? (!problems.isEmpty || request.trust == .ask) {
            return .untrusted(key, problems)
        }
        if let shown = request.shownCertificate, chance(1, in: 4) {
            refuse(shown, by: place, id)
            let causes: [TransferFailure.Cause] = [
                .clientCertificateUnreadable, .clientKeyPassphraseWrong, .clientKeyMismatch, .clientCertificateRefused,
            ]
            return causes.randomElement(using: &random).map { .certificate($0) }
        }
        return request.refusesCertificateRequest && chance(1, in: 3) ? .certificate(.clientCertificateRequired) : nil
    }

    private mutating func answer(_ request: TransferRequest, at place: String, _ offers: String, _ id: FetchID) {
        let text = "\(place)-\(passwords[place] ?? 0)"
        let sent = request.sent
        let right = [basic("bob", text), basic("ring", text), "Bearer \(text)", "Hoba \(text)", "NTLM bob \(text)"]
        if request.handshake != nil, chance(1, in: 6) {
            let cause: TransferFailure.Cause = request.handshake?.scheme == .ntlm ? .charactersUnsupported : .noTicket
            return fail(id, TransferFailure(.cannotConnect, "", cause: cause))
        }
        if chance(1, in: 30) { return respond(id, 503, "Server", "in trouble") }
        if let sent, right.contains(sent) || sent == "Negotiate" && chance(1, in: 2) {
            recordAcceptance(of: place + sent, id)
            guard chance(1, in: 8) else { return respond(id, 200, "Server", "walk") }
            let next = Self.places.randomElement(using: &random)?.name ?? ""
            return respond(id, 302, "Location", "\(next)/x/1")
        }
        refuse(sent, by: place, id)
        if chance(1, in: 30) { return respond(id, 407, "Proxy-Authenticate", "Basic realm=\"trap\"") }
        respond(id, 401, chance(1, in: 30) ? "Server" : "WWW-Authenticate", offers)
    }

    private mutating func refuse(_ sent: String?, by place: String, _ id: FetchID) {
        guard let sent else { return }
        unproven.removeAll { $0.trial == place + sent }
        if fetches[id]?.refused.insert(place + sent).inserted == false {
            problem = "\(id) has sent a refused credential again"
        }
    }

    private mutating func respond(
        _ id: FetchID, _ status: Int, _ name: String, _ value: String, isFromProxy: Bool = false
    ) {
        var response = TransferResponse(status: status, headers: [HeaderField(name, value)])
        response.isFromProxy = isFromProxy
        take(table.handle(.received(response), of: id, environment), after: id)
    }

    private mutating func fail(_ id: FetchID, _ failure: TransferFailure) {
        take(table.handle(.failed(failure), of: id, environment), after: id)
    }
}
