internal import WatchwordProtocol

/// The current hop of a fetch, its permissions there, and its records of all servers and proxies.
struct HopState: Sendable {
    let fetch: SharedFetchRequest
    var chain: RedirectChain
    var leases: HeldLeases
    var consent: ConsentResolution
    /// The exception by which the server's certificate was accepted, if any.
    var exception: TrustDecision?
    /// The client's answer to `auth/useStorage`; `nil` before it was asked.
    private var storageAnswer: Bool?
    /// The number of rounds so far: challenges and other reasons to send a request again.
    private var rounds = 0
    /// The records of each server and proxy.
    private var histories: [Challenger: ChallengerHistory] = [:]

    init(_ fetch: SharedFetchRequest) {
        self.fetch = fetch
        chain = RedirectChain(fetch)
        leases = HeldLeases(fetch)
        consent = ConsentResolution(fetch)
    }

    var server: Challenger { chain.server }

    subscript(challenger: Challenger) -> ChallengerHistory {
        get { histories[challenger] ?? ChallengerHistory() }
        set { histories[challenger] = newValue }
    }

    /// Counts a round; returns `false` if the limit is exceeded.
    mutating func beginRound() -> Bool {
        rounds += 1
        return rounds <= Limits.authenticationRounds
    }

    func space(_ method: AuthenticationMethod) -> ProtectionSpace { server.space(realm: nil, method) }

    // MARK: Stored credentials

    /// Whether stored credentials may be read and written for this fetch, unless its client refuses, which may have to
    /// be asked first (`auth/useStorage`). `false` if the client could have directed the credentials to a server or
    /// proxy of its own (SEMANTICS rule 24).
    func allowsStorage(for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        // guard: storage-locked
        guard fetch.useStorage, !context.isLocked, storageAnswer ?? true else { return false }
        if chain.route?.isNamedByFetch == true { return false }  // guard: storage-named-proxy
        // Others could have chosen the proxy, which would read the login.
        // guard: storage-forgeable-proxy
        if chain.route?.isForgeable == true, space.proxyType == nil, !chain.isSecure { return false }
        // Behind a proxy, "localhost" is not this machine, and must not get its credentials.
        // guard: storage-loopback-behind-proxy
        if space.proxyType == nil, chain.route != nil, Loopback.isLoopback(space.host), !chain.isSecure { return false }
        return space.proxyType != nil || exception == nil  // guard: storage-over-exception
    }

    private var isAskedAboutStorage: Bool {
        fetch.subscription.map { $0.mode == .classic && $0.asksUseStorage } ?? false
    }

    /// Whether stored credentials may be read and written for this fetch now. If its client wants to be asked, they may
    /// not before the client has answered; while the broker is locked, the client is not asked.
    func allowsStorageNow(for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        allowsStorage(for: space, context) && (storageAnswer != nil || !isAskedAboutStorage)
    }

    /// Whether exceptions for certificates may be read and written for this fetch.
    func mayRememberTrust(_ context: FetchContext) -> Bool {
        fetch.useStorage && !context.isLocked && chain.route?.isNamedByFetch != true
            && (storageAnswer ?? !isAskedAboutStorage)
    }

    /// Whether a credential from `source` may be used now. The broker may have been locked since a stored one was
    /// found.
    func mayUse(_ source: CredentialSource, for space: ProtectionSpace, _ context: FetchContext) -> Bool {
        switch source {
        case .session, .keyring, .ambient, .netrc, .command:
            allowsStorageNow(for: space, context)  // guard: netrc-while-locked
        case .explicit, .url, .client, .agent: true
        }
    }

    /// Bars the fetch from stored credentials, because a question before its next request was never answered
    /// (SECURITY-RULES X1).
    mutating func renounceStorage() { storageAnswer = false }

    /// Returns the step that obtains consent to the use of a stored login, or that chooses again after a denial; `nil`
    /// if there is consent, or none is needed.
    mutating func confirm(
        _ candidate: Candidate, in space: ProtectionSpace, _ question: Question, _ context: inout FetchContext
    ) -> Resolution? {
        consent.use(of: candidate, in: space, context).flatMap {
            confirm($0, of: candidate.source, question, &context)
        }
    }

    /// Returns the step that obtains consent to `use`, or that chooses again after a denial; `nil` if there is consent.
    mutating func confirm(
        _ use: ConsentBook.Use, of source: CredentialSource, _ question: Question, _ context: inout FetchContext
    ) -> Resolution? {
        switch consent.consent(to: use, context) {
        case true?: return nil
        case false?:
            consent.refuse(use, context)
            return .chooseAgain(question)
        case nil:
            guard let subject = fetch.access.subject else { return .fail(.unexpectedEvent) }
            // One consent prompt is open at a time for each space and program. All unidentified programs together count
            // as one.
            var key = queueKey(for: use.space, source == .ambient ? .own : .find, context)
            (key.user, key.client) = (nil, fetch.access.isUnidentified ? .unidentified : key.client)
            guard leases.take(key, &context) else { return .wait(question, .queue(key)) }
            let request = ConsentRequest(
                subject: subject, space: use.space, user: use.user, source: source, url: chain.hop.url.text,
                method: chain.hop.method)
            return .confirm(question, use, request)
        }
    }

    // MARK: Consultations

    /// Returns the next request that the client has to answer before a stored credential is tried, if any.
    /// `auth/canAuthenticate` is sent once per space, `auth/useStorage` once per fetch (SEMANTICS rule 3).
    func nextConsultation(for space: ProtectionSpace, _ context: FetchContext) -> Consultation? {
        guard let subscription = fetch.subscription, subscription.mode == .classic else { return nil }
        if subscription.asksCanAuthenticate, self[Challenger(space)].canAuthenticate[space] == nil {
            return .canAuthenticate(space)
        }
        if subscription.asksUseStorage, allowsStorage(for: space, context), storageAnswer == nil {
            return .useStorage
        }
        return nil
    }

    /// Records the client's answer to a consultation.
    /// - Parameter answer: `nil` if there is none, which counts as no. Except for a redirect, a missing answer also
    ///   bars the fetch from stored credentials.
    mutating func record(_ answer: Bool?, to consultation: Consultation) {
        switch consultation {
        case .approveRedirect: return
        case .canAuthenticate(let space): self[Challenger(space)].canAuthenticate[space] = answer ?? false
        case .useStorage: storageAnswer = answer
        }
        if answer == nil { storageAnswer = false }  // guard: silence-about-storage
    }

    // MARK: Respondents

    /// Whether the handler or the client has to be asked before a stored credential is sent: it uses the mode
    /// `everything` (SEMANTICS rule 5) and is not in `passed`.
    func asksFirst(in space: ProtectionSpace, after passed: PassedRespondents = []) -> Bool {
        func wants(_ handler: Subscription?, _ respondent: Respondent) -> Bool {
            handler?.mode == .everything && handler?.covers(space) == true && !passed.contains(respondent)
        }
        // guard: handler-decides-what-is-sent
        return wants(fetch.handler, .handler) || wants(fetch.subscription, .client)
    }

    func nextRespondent(after passed: PassedRespondents, in space: ProtectionSpace) -> Respondent? {
        if handlerCovers(space), !passed.contains(.handler) { return .handler }  // guard: handler-first
        guard fetch.interaction != .none, canAuthenticate(in: space) else { return nil }
        if fetch.subscription?.covers(space) == true, !passed.contains(.client) { return .client }
        // The person who denied the use of a login would be asked to type it.
        // guard: consent-denied-asks-no-agent
        return passed.contains(.agents) || consent.isDenied(in: space) ? nil : .agents
    }

    /// Whether the handler is asked about challenges of this space. In the mode `classic`, it is asked about server
    /// trust and client certificates only if it names methods (SEMANTICS rule 3).
    private func handlerCovers(_ space: ProtectionSpace) -> Bool {
        guard let handler = fetch.handler, handler.covers(space) else { return false }
        return LeaseSlot(space) != .connection || handler.mode == .everything || handler.methods != nil
    }

    /// Whether client and agents may be asked about this space. For server trust and client certificates, a client that
    /// subscribes in the mode `classic` has to implement `auth/canAuthenticate` (SEMANTICS rule 3).
    private func canAuthenticate(in space: ProtectionSpace) -> Bool {
        if let answer = self[Challenger(space)].canAuthenticate[space] { return answer }
        guard LeaseSlot(space) == .connection, let subscription = fetch.subscription else { return true }
        return subscription.mode == .everything || subscription.asksCanAuthenticate
    }

    /// Returns the respondent that this fetch would ask next. If that is its handler, answers given for other fetches
    /// do not apply to it; if that is an agent, an agent's answer does.
    func nextRespondent(for question: Question) -> Respondent? {
        space(of: question).flatMap { nextRespondent(after: question.declined, in: $0) }
    }

    /// Whether the handler is asked although `found` was accepted for another fetch. It is always asked about
    /// certificates, and about logins only in the mode `everything`.
    func isForHandler(_ question: Question, despite found: AuthenticationQueues.SharedDecision) -> Bool {
        guard nextRespondent(for: question) == .handler else { return false }
        guard case .login = found else { return true }  // guard: handler-decides-on-certificates
        return fetch.handler?.mode == .everything
    }

    // MARK: Questions and queues

    func challenger(of question: Question) -> Challenger {
        if case .login(let offers, _) = question.kind { offers.challenger } else { server }
    }

    /// Returns the space of a question; `nil` for a login challenge of which no scheme is left.
    func space(of question: Question) -> ProtectionSpace? {
        switch question.kind {
        case .login(let offers, _): question.asked?.protectionSpace(at: offers.challenger)
        case .serverTrust: space(.serverTrust)
        case .clientCertificate: space(.clientCertificate)
        }
    }

    func queueKey(
        for space: ProtectionSpace, _ purpose: AuthenticationQueues.Key.Purpose, certificate: [UInt8]? = nil,
        scope: BearerScope? = nil, _ context: FetchContext
    ) -> AuthenticationQueues.Key {
        let usesStorage = allowsStorageNow(for: space, context)
        return AuthenticationQueues.Key(
            space: space, purpose: purpose, user: fetch.namedUser(at: Challenger(space)),
            client: usesStorage ? fetch.access.sharingPartition : .client(fetch.client.tag), usesStorage: usesStorage,
            certificate: certificate, scope: scope, steering: steering(to: Challenger(space)))
    }

    /// Returns what steers the connection to a server; `nil` if only the URL and the configuration do, and for a proxy.
    func steering(to challenger: Challenger) -> AuthenticationQueues.Steering? {
        let proxy = chain.route.flatMap { $0.isNamedByFetch ? $0.endpoint : nil }
        // guard: answers-follow-no-steering
        if challenger.isProxy || proxy == nil && exception == nil { return nil }
        return AuthenticationQueues.Steering(proxy: proxy, exceptionalKey: exception?.spkiSha256)
    }

    // MARK: Audit records and verdicts

    func audit(_ kind: AuditEvent.Kind, _ attempt: Attempt, _ context: inout FetchContext) {
        audit(kind, attempt.space, attempt.credential.shownUser, attempt.source, nil, &context)
    }

    func audit(
        _ kind: AuditEvent.Kind, _ space: ProtectionSpace, _ user: ExactText?, _ source: CredentialSource,
        _ persistence: Persistence?, _ context: inout FetchContext
    ) {
        let record = AuditRecord(
            kind: kind, origin: chain.origin, space: SpacePattern(space), user: user, source: source,
            persistence: persistence)
        context.outbox.add(.effect(.audit(record), of: fetch.id))
    }

    /// Reports the outcome of a login to the client that supplied it.
    func report(_ space: ProtectionSpace, _ user: ExactText?, isAccepted: Bool, _ context: inout FetchContext) {
        let verdict = LoginVerdict(space: space, isAccepted: isAccepted, user: user)
        context.outbox.add(.effect(.report(verdict), of: fetch.id))
    }
}
