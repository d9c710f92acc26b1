internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Obtains tokens from authorization servers. Owns the searches that are under way, and the grants of the session.
final class TokenDesk {
    /// The time for which a search without a waiting fetch continues, because another program may still wait for the same
    /// login.
    private static let patience = Duration.seconds(5)

    let fetches: FetchRouter
    private let fronts: FrontDesk
    let reference: DeskReference<TokenDesk>
    let client: AuthorizationClient
    let grants: OAuthGrantStore
    private(set) var searches = RunningTokenSearches()
    private var queue = GrantQueue()
    var recent = RecentLogins()
    /// The timers that renew tokens, by the purpose of the token.
    var renewals: [TokenQuery.Purpose: DeadlineTimer] = [:]

    init(
        _ fetches: FetchRouter, _ methods: FetchMethods, _ fronts: FrontDesk, _ keyring: KeyringDesk,
        _ reference: DeskReference<TokenDesk>
    ) {
        (self.fetches, self.fronts, self.reference) = (fetches, fronts, reference)
        client = AuthorizationClient(methods, fetches)
        grants = OAuthGrantStore(keyring, reference)
    }

    var context: DeskContext { fetches.context }

    private var questions: QuestionDesk { fetches.desks.questions }

    private var clock: TokenMachine.Clock {
        TokenMachine.Clock(now: context.now, sinceEpoch: context.clock.sinceEpoch)
    }

    // MARK: Fetches

    /// Obtains a token for a fetch, together with all others that need the same one.
    func obtain(_ query: TokenQuery, for fetch: RunningFetch) {
        fetches.beginWait(of: fetch)
        if let failure = recent.failure(of: query, now: context.now) {
            return fetches.report(.found(.token(.failed(failure))), of: fetch.id)
        }
        let opensLogin = query.mayAsk && recent.refusal(of: query, now: context.now) == nil
        if let search = searches[query.purpose] {
            fetch.tokenSearch = search.number
            search.machine.mayAsk = search.machine.mayAsk || opensLogin
            search.waiting.fetches[fetch.id] = query.mayAsk
            if let login = search.machine.login { show(login, to: fetch.id, of: search) }
            return
        }
        let search = searches.begin(query)
        fetch.tokenSearch = search.number
        search.machine.mayAsk = opensLogin
        search.waiting.fetches[fetch.id] = query.mayAsk
        search.client = fetch.owner?.connection
        advance(search.number, .started)
    }

    /// Obtains a token without asking a person.
    /// - Parameter completion: called on the broker's executor.
    func obtain(_ query: TokenQuery, completion: @escaping (TokenOutcome) -> Void) {
        if let search = searches[query.purpose] {
            if search.machine.login != nil { return completion(.nothing) }
            return search.waiting.completions.append(completion)
        }
        let search = searches.begin(query)
        search.waiting.completions.append(completion)
        advance(search.number, .started)
    }

    /// The fetch continues with another command than the question about its login.
    func leave(_ fetch: RunningFetch) {
        guard let search = fetch.tokenSearch.take().flatMap({ searches[$0] }) else { return }
        search.waiting.fetches[fetch.id] = nil
        closeIfUnused(search)
    }

    private func closeIfUnused(_ search: RunningTokenSearch) {
        guard search.waiting.fetches.isEmpty, search.machine.login != nil else { return }
        let number = search.number
        reference.eventually(after: Self.patience) { desk in
            if let search = desk.searches[number], search.waiting.fetches.isEmpty, search.machine.login != nil {
                desk.close(search)
            }
        }
    }

    private func show(_ login: TokenLogin, to id: FetchID, of search: RunningTokenSearch) {
        guard search.waiting.fetches[id] == true else {
            search.waiting.fetches[id] = nil
            return fetches.report(.found(.token(.nothing)), of: id)
        }
        fetches.report(.found(.token(.login(login))), of: id)
    }

    // MARK: Searches

    private func advance(_ number: Int, _ event: TokenMachine.Event) {
        guard let search = searches[number] else { return }
        for command in search.machine.handle(event, clock) { perform(command, of: search) }
    }

    private func perform(_ command: TokenMachine.Command, of search: RunningTokenSearch) {
        let number = search.number
        switch command {
        case .send(let request):
            client.send(request, for: search.client) { [reference] reply in
                reference.post { $0.advance(number, .replied(reply)) }
            }
        case .lookUp(let key): if queue.use(key, by: number) { read(key, number) }
        case .store(let grant):
            let isKept = search.detached != .keyring && isConnected(search.purpose.owner)
            grants.store(grant, of: search.purpose.owner, isNew: search.hasAsked, isKept: isKept) { [reference] in
                reference.post { $0.advance(number, .stored) }
            }
        case .forget(let key): forget(key, of: search)
        case .listen(let port): listen(at: port, search)
        case .ask(let login):
            context.log.info("login needed", metadata: ["issuer": "\(DisplayURL.text(login.issuer))"])
            release(number)
            search.hasAsked = true
            for completion in search.waiting.takeCompletions() { completion(.nothing) }
            for id in search.waiting.fetches.keys.sorted(by: { $0.number < $1.number }) {
                show(login, to: id, of: search)
            }
            closeIfUnused(search)
        case .answer(let page, let visit):
            if let visit = search.visits.removeValue(forKey: visit) { fronts.answer(visit, page) }
        case .wake(let time):
            search.timer = reference.after(max(.zero, time - context.now)) { $0.advance(number, .timePassed) }
        case .finish(let outcome): finish(search, outcome)
        }
    }

    // MARK: Grants

    private func read(_ key: OAuthGrant.Key, _ number: Int) {
        let search = searches[number]
        // A program without consent does not open the window of the keyring.
        // guard: oauth-unlock-with-consent
        let mayAsk = search.map { $0.machine.mayAsk && $0.machine.query.isConsented } ?? false
        grants.find(key, of: search?.purpose.owner, mayAsk: mayAsk) { [reference] grant in
            reference.post { $0.advance(number, .found(grant)) }
        }
    }

    /// Forgets a grant that its server has refused.
    private func forget(_ key: OAuthGrant.Key, of search: RunningTokenSearch) {
        grants.forget([key], of: search.purpose.owner, isAsked: false) { [log = context.log] result in
            guard case .failure(let failure) = result else { return }
            log.warning("a refused login is still in the keyring", metadata: ["reason": "\(failure.text)"])
        }
    }

    /// Ends the use of grants by a search, and lets the next ones read them.
    private func release(_ number: Int) {
        for (key, next) in queue.release(number) { read(key, next) }
    }

    // MARK: Ends

    private func listen(at port: Int?, _ search: RunningTokenSearch) {
        do {
            let (front, address) = try fronts.openLogin(port: port) { [unowned self, unowned search] answer in
                search.lastVisit += 1
                search.visits[search.lastVisit] = answer
                let target = if case .origin(let path) = answer.request.target { path } else { "" }
                advance(
                    search.number, .visited(method: answer.request.method, target: target, number: search.lastVisit))
            }
            search.front = front
            advance(search.number, .listening(.success("127.0.0.1:\(address)")))
        } catch {
            let other = searches.all.first { $0 !== search && $0.machine.listens(at: port) }
            let text =
                other.map { "the login for \($0.resource) uses port \(port ?? 0) now; finish or decline it first" }
                ?? (error as? RPCError)?.message ?? "\(error)"
            let failure = FetchFailure(.loginFailed, "cannot listen for the end of the login: \(text)")
            advance(search.number, .listening(.failure(failure)))
        }
    }

    private func isConnected(_ owner: ClientTag?) -> Bool {
        owner == nil || fetches.clients.all.contains { $0.id.tag == owner }
    }

    /// Ends a search for all that wait for it. A renewal continues: without its reply, a login in the keyring would be lost.
    func detach(
        _ search: RunningTokenSearch, _ outcome: TokenOutcome, storing place: RunningTokenSearch.Detachment
    ) {
        guard search.machine.isRenewing, place != .keyring || grants.hasKeyring else { return finish(search, outcome) }
        search.detached = place
        search.machine.mayAsk = false
        report(outcome, of: search.machine.query, to: search.takeWaiting())
    }

    func finish(_ search: RunningTokenSearch, _ outcome: TokenOutcome) {
        guard search.detached == nil else { return close(search) }
        if case .failed(let failure) = outcome, failure.kind == .cancelled, !context.isClosing {
            return restart(search)
        }
        switch outcome {
        case .token(let credential):
            context.log.info("token obtained", metadata: ["resource": "\(search.resource)"])
            planRenewal(of: credential, search.machine.query)
            if search.hasAsked { recent.recordLogin(search.machine.query, now: context.now) }
        case .failed(let failure):
            context.log.notice(
                "no token", metadata: ["resource": "\(search.resource)", "reason": "\(failure.text)"])
            recent.record(failure, of: search.machine, isOfPerson: search.hasAsked, now: context.now)
            client.forgetDocuments()
        case .login, .nothing, .needsConsent: break
        }
        let waiting = search.takeWaiting()
        close(search)
        report(outcome, of: search.machine.query, to: waiting)
    }

    private func report(_ outcome: TokenOutcome, of query: TokenQuery, to waiting: RunningTokenSearch.Waiting) {
        for completion in waiting.completions { completion(outcome) }
        for (id, mayAsk) in waiting.fetches.sorted(by: { $0.key.number < $1.key.number }) {
            guard let fetch = fetches[id] else { continue }
            fetch.tokenSearch = nil
            if questions.question(of: fetch)?.challenge?.login != nil {
                answer(fetch, outcome)
            } else if mayAsk, outcome == .nothing, let refusal = recent.refusal(of: query, now: context.now) {
                fetches.report(.found(.token(.failed(refusal))), of: id)
            } else {
                fetches.report(.found(.token(outcome)), of: id)
            }
        }
    }

    /// Begins again for the other fetches, because the client for which the broker has logged in has left.
    private func restart(_ search: RunningTokenSearch) {
        let (query, waiting) = (search.machine.query, search.takeWaiting())
        close(search)
        for (id, mayAsk) in waiting.fetches.sorted(by: { $0.key.number < $1.key.number }) {
            if let fetch = fetches[id] { obtain(query.asking(mayAsk), for: fetch) }
        }
        for completion in waiting.completions { completion(.nothing) }
    }

    /// Answers the question about a login, because the login has ended.
    private func answer(_ fetch: RunningFetch, _ outcome: TokenOutcome) {
        switch outcome {
        case .token(let credential):
            questions.endLogin(of: fetch, .credential(.login(credential)), event: .loggedIn(credential))
        case .failed(let failure) where failure.kind == .challengeCancelled: questions.endLogin(of: fetch, .cancel)
        case .failed(let failure):
            questions.endLogin(of: fetch, nil)
            fetches.cancel(fetch, failure)
        case .login, .nothing, .needsConsent: questions.endLogin(of: fetch, .proceed)
        }
    }

    /// Ends the searches for resources of an origin, or all of them, because what they would store is to be forgotten.
    /// - Parameter storesRenewals: whether logins in the keyring remain.
    func endSearches(storesRenewals: Bool = false, where matches: (ResourcePath) -> Bool) {
        let failure = FetchFailure(
            .loginFailed, "the login was ended, because logins were forgotten meanwhile; try again")
        for search in searches.all {
            guard let place = ResourcePath(search.purpose.resource), matches(place) else { continue }
            if storesRenewals {
                detach(search, .failed(failure), storing: .keyring)
            } else {
                finish(search, .failed(failure))
            }
        }
        recent.forget(where: matches)
    }

    /// Ends the searches whose table was changed or removed.
    /// - Parameter former: the tables before.
    func rulesChanged(_ former: [OAuthRule]) {
        let (before, rules) = (OAuthRules(former), context.options.tokens)
        let failure = FetchFailure(.loginFailed, "the login was ended, because its table was changed; try again")
        for search in searches.all where !rules.isCurrent(search.machine.query) {
            detach(search, .failed(failure), storing: .sessionAndKeyring)
        }
        // A new table may be inside that of a token.
        for rule in former where rules.innerPaths(of: rule) != before.innerPaths(of: rule) {
            guard let place = ResourcePath(rule.resource) else { continue }
            fetches.perform(fetches.change { $0.forgetTokens(at: place.origin) })
        }
        recent = RecentLogins()
        client.forgetDocuments()
    }

    private func close(_ search: RunningTokenSearch) {
        guard searches.end(search) else { return }
        release(search.number)
        search.timer = nil
        for visit in search.visits.values { fronts.answer(visit, .failed) }
        search.visits = [:]
        // The last answer must still reach the browser.
        if let front = search.front { fronts.closeLogin(front) }
        search.front = nil
        for id in search.waiting.fetches.keys { fetches[id]?.tokenSearch = nil }
    }
}
