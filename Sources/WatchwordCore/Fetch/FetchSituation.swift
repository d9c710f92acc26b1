internal import WatchwordProtocol

/// The current position of a fetch, its permissions there, and its record of each server and proxy.
struct FetchSituation: Sendable {
    let intent: FetchIntent
    var chain: RedirectChain
    var turns: HeldTurns
    var consent: ConsentResolution
    /// Whether the server's certificate was accepted by exception.
    var isOverException = false
    /// What the client said to `useStorage`; `nil` before it was asked.
    private var storageAnswer: Bool?
    /// Challenges, and other reasons to begin again.
    private var rounds = 0
    /// Failed attempts and so on, of each server and proxy.
    private var targets: [Challenger: TargetRecord] = [:]

    init(_ intent: FetchIntent) {
        self.intent = intent
        chain = RedirectChain(intent)
        turns = HeldTurns(intent)
        consent = ConsentResolution(intent)
    }

    var plan: FetchPlan { intent.plan }
    var server: Challenger { chain.server }

    subscript(challenger: Challenger) -> TargetRecord {
        get { targets[challenger] ?? TargetRecord() }
        set { targets[challenger] = newValue }
    }

    /// `false` where that is one too many.
    mutating func beginRound() -> Bool {
        rounds += 1
        return rounds <= Limits.authenticationRounds
    }

    func space(_ method: AuthenticationMethod) -> ProtectionSpace { server.space(realm: nil, method) }

    // MARK: What is stored

    /// Whether anything may be read or written for this fetch, as far as is known: its client may still say no. Never where
    /// the client could have steered what is stored to somebody else (semantics rule 24).
    func mightUseStorage(for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        guard intent.plan.useStorage, !context.isLocked, storageAnswer ?? true else { return false }
        if chain.route?.isNamedByFetch == true { return false }
        // What was kept for this machine is not for one of that name behind a proxy.
        if space.proxyType == nil, chain.route != nil, Loopback.isLoopback(space.host), !chain.isTunnel { return false }
        return space.proxyType != nil || !isOverException
    }

    private var isAskedAboutStorage: Bool {
        intent.plan.subscription.map { $0.mode == .classic && $0.asksUseStorage } ?? false
    }

    /// Whether anything may be read or written for this fetch. Not before its client was asked, which a lock puts off.
    func mayUseStorage(for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        mightUseStorage(for: space, context) && (storageAnswer != nil || !isAskedAboutStorage)
    }

    /// Whether exceptions for certificates may be read and written for this fetch.
    func mayRememberTrust(_ context: FetchContext) -> Bool {
        intent.plan.useStorage && !context.isLocked && chain.route?.isNamedByFetch != true
            && (storageAnswer ?? !isAskedAboutStorage)
    }

    /// What is stored may have been locked away since it was found.
    func mayUse(_ source: CredentialSource, for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        switch source {
        case .session, .keyring, .ambient, .netrc: mayUseStorage(for: space, context)
        case .explicit, .url, .client, .agent: true
        }
    }

    /// The request that was held back for a question goes out without what is stored (security rule X1).
    mutating func renounceStorage() { storageAnswer = false }

    /// Before it is used: the question whether it may be, where there is one. What may not be used is chosen no more.
    mutating func confirm(
        _ use: GrantBook.Use, of source: CredentialSource, _ question: Question, _ context: inout FetchContext
    ) -> Resolution? {
        switch consent.consent(to: use, context) {
        case true?: return nil
        case false?:
            consent.refuse(use)
            return .chooseAgain(question)
        case nil:
            guard let subject = intent.access.subject else { return .fail(.unexpectedEvent) }
            // One window at a time for what one program wants to use, and for what all want that nobody tells from others.
            var key = turnKey(for: use.space, source == .ambient ? .own : .find, context)
            (key.user, key.client) = (nil, intent.access.isNameless ? .nameless : key.client)
            guard turns.take(key, &context) else { return .wait(question, .line(key)) }
            let request = ConsentRequest(
                subject: subject, space: use.space, user: use.user, source: source, url: chain.hop.url.text,
                method: chain.hop.method)
            return .confirm(question, use, request)
        }
    }

    // MARK: Consultations

    /// Rule 3: once per space, and before anything that is stored is tried.
    func nextConsultation(for space: ProtectionSpace, _ context: FetchContext) -> Consultation? {
        guard let subscription = intent.plan.subscription, subscription.mode == .classic else { return nil }
        if subscription.asksCanAuthenticate, self[Challenger(space)].canAuthenticate[space] == nil {
            return .canAuthenticate(space)
        }
        if subscription.asksUseStorage, mightUseStorage(for: space, context), storageAnswer == nil {
            return .useStorage
        }
        return nil
    }

    /// - Parameter answer: `nil` where nobody answers: then nothing that is stored is used, and nobody is asked about the space.
    mutating func note(_ answer: Bool?, to consultation: Consultation) {
        switch consultation {
        case .approveRedirect: return
        case .canAuthenticate(let space): self[Challenger(space)].canAuthenticate[space] = answer ?? false
        case .useStorage: storageAnswer = answer
        }
        if answer == nil { storageAnswer = false }
    }

    // MARK: Respondents

    /// Rule 5: whether somebody who has not passed gets every challenge at once, before anything that is stored is sent.
    func asksFirst(in space: ProtectionSpace, after passed: PassedRespondents = []) -> Bool {
        func wants(_ handler: Subscription?, _ respondent: Respondent) -> Bool {
            handler?.mode == .everything && handler?.covers(space) == true && !passed.contains(respondent)
        }
        return wants(intent.plan.handler, .handler) || wants(intent.plan.subscription, .client)
    }

    func nextRespondent(after passed: PassedRespondents, in space: ProtectionSpace) -> Respondent? {
        if handlerCovers(space), !passed.contains(.handler) { return .handler }
        guard intent.plan.interaction != .none, canAuthenticate(in: space) else { return nil }
        if intent.plan.subscription?.covers(space) == true, !passed.contains(.client) { return .client }
        return passed.contains(.agents) ? nil : .agents
    }

    /// Rule 3: in the mode `classic` it has to say that it answers about connections, by naming the method.
    private func handlerCovers(_ space: ProtectionSpace) -> Bool {
        guard let handler = intent.plan.handler, handler.covers(space) else { return false }
        return TurnSlot(space) != .connection || handler.mode == .everything || handler.methods != nil
    }

    /// Rule 3: a client that does not say is not asked about connections.
    private func canAuthenticate(in space: ProtectionSpace) -> Bool {
        if let answer = self[Challenger(space)].canAuthenticate[space] { return answer }
        guard TurnSlot(space) == .connection, let subscription = intent.plan.subscription else { return true }
        return subscription.mode == .everything || subscription.asksCanAuthenticate
    }

    /// Who is asked next about a question of this fetch: what others have decided is not decided for its handler, and what an
    /// agent has said to another fetch holds for those that would ask an agent.
    func nextRespondent(for question: Question) -> Respondent? {
        space(of: question).flatMap { nextRespondent(after: question.declined, in: $0) }
    }

    /// Whether the handler is asked also where others have found something: about certificates always, about logins in the
    /// mode `everything`.
    func isForHandler(_ question: Question, despite found: SpaceTurns.Found) -> Bool {
        guard nextRespondent(for: question) == .handler else { return false }
        guard case .login = found else { return true }
        return intent.plan.handler?.mode == .everything
    }

    // MARK: Questions and turns

    func challenger(of question: Question) -> Challenger {
        if case .login(let offers, _) = question.kind { offers.challenger } else { server }
    }

    /// `nil` for a response of which no scheme is left.
    func space(of question: Question) -> ProtectionSpace? {
        switch question.kind {
        case .login(let offers, _): question.asked?.protectionSpace(at: offers.challenger)
        case .serverTrust: space(.serverTrust)
        case .clientCertificate: space(.clientCertificate)
        }
    }

    func turnKey(
        for space: ProtectionSpace, _ purpose: SpaceTurns.Key.Purpose, certificate: [UInt8]? = nil,
        scope: BearerScope? = nil, _ context: FetchContext
    ) -> SpaceTurns.Key {
        let usesStorage = mayUseStorage(for: space, context)
        return SpaceTurns.Key(
            space: space, purpose: purpose, user: intent.namedUser(at: Challenger(space)),
            client: usesStorage ? intent.access.line : .client(intent.client.tag), usesStorage: usesStorage,
            certificate: certificate, scope: scope)
    }

    // MARK: Accounts

    func note(_ kind: AuditEvent.Kind, _ attempt: Attempt, _ context: inout FetchContext) {
        note(kind, attempt.space, attempt.credential.shownUser, attempt.source, nil, &context)
    }

    func note(
        _ kind: AuditEvent.Kind, _ space: ProtectionSpace, _ user: ExactText?, _ source: CredentialSource,
        _ persistence: Persistence?, _ context: inout FetchContext
    ) {
        context.outbox.notes.append(
            AuditNote(
                kind: kind, fetch: intent.id, origin: chain.origin, space: SpacePattern(space), user: user,
                source: source, persistence: persistence))
    }

    /// Reports the outcome of a login to the client that supplied it.
    func judge(_ space: ProtectionSpace, _ user: ExactText?, isAccepted: Bool, _ context: inout FetchContext) {
        context.outbox.verdicts.append(
            LoginVerdict(fetch: intent.id, space: space, isAccepted: isAccepted, user: user))
    }
}
