internal import WatchwordProtocol

/// The logins of the next request: SEMANTICS rules 16 and 22.
extension LoginResolution {
    /// Prepares a new hop: drops the login to the server, and the one to the proxy if the proxy has changed.
    mutating func enterHop(isOtherRoute: Bool) {
        if isOtherRoute { outgoing.proxy = nil }  // guard: redirect-drops-proxy-login
        outgoing.server = nil  // guard: redirect-drops-authorization
        handshakeQuestion = nil
        withheldQuestion = nil
    }

    /// Chooses the logins that the first request of a hop contains before any challenge. Returns the consultation that
    /// the client has to answer before that, if any.
    mutating func prepare(_ hop: HopState, _ context: inout FetchContext) -> Consultation? {
        context.session.wallTime = context.environment.sinceEpoch
        for side in Side.allCases {
            if case .some = outgoing[side] { continue }
            if side == .server, let own = hop.unaskedAttempt(context) {
                outgoing.server = own
                continue
            }
            guard let challenger = hop.chain.challenger(at: side),
                let attempt = hop.preemptiveAttempt(at: challenger, context)
            else { continue }
            if let consultation = hop.nextConsultation(for: attempt.space, context) { return consultation }
            if hop.allowsStorageNow(for: attempt.space, context) { outgoing[side] = attempt }
        }
        return nil
    }

    /// Drops logins that may no longer be used: because of a trust exception (SEMANTICS rule 24), which also ends the
    /// use of answers to earlier questions, a lock or missing consent, or because they were forgotten.
    mutating func discardUnusableCredentials(_ hop: HopState, _ context: inout FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side],
                // The person was asked about another server.
                attempt.source == .agent && attempt.steering != hop.steering(to: attempt.challenger)
                    || !hop.mayUse(attempt.source, for: attempt.space, context)
                    || !hop.isConsented(attempt, context)
                    || attempt.source.isStored && !hop.isCurrent(attempt, context)
                    || hop.isOfFormerNetrc(attempt.source, since: attempt.mark, context)
            else { continue }
            outgoing[side] = nil
            context.endAttempt(by: hop.fetch.id, in: attempt.space)
        }
    }

    /// Returns the question of a fetch that sends no request without a login; `nil` if it has one, or needs none. Its
    /// outcome without an answer is the challenge that the server would send if it required a login.
    func questionBeforeRequest(_ hop: HopState, _ context: FetchContext) -> Question? {
        guard hop.fetch.logsInFirst, outgoing.server == nil else { return nil }
        let field = HeaderField("WWW-Authenticate", "Basic realm=\"\(hop.chain.origin.host)\"")
        return question(raisedBy: TransferResponse(status: 401, headers: [field]), at: .server, hop, context)
    }

    // MARK: In-flight attempts

    /// Begins an in-flight attempt. Returns `false` if the fetch has to wait, because others have sent the same
    /// credential and have no verdict yet.
    func beginAttempt(_ attempt: Attempt, _ hop: HopState, _ context: inout FetchContext) -> Bool {
        let login = login(of: attempt, hop)
        guard context.queues.beginAttempt(of: login, by: hop.fetch.id, now: context.now) else { return false }
        if let key = hop.leases[LeaseSlot(attempt.space)], key.space == attempt.space {
            let trial = AuthenticationQueues.Trial(login: login, source: attempt.source)
            context.outbox.postponed += context.queues.recordTrial(trial, in: key, by: hop.fetch.id)
        }
        return true
    }

    private func login(of attempt: Attempt, _ hop: HopState) -> InFlightAttempts.Login {
        InFlightAttempts.Login(
            credential: attempt.credential, space: attempt.space,
            steering: hop.steering(to: attempt.challenger), provenAt: attempt.provenAt)
    }

    /// Returns a side whose login has to wait for the verdict on other fetches' attempts, if any. Such logins are sent
    /// without a new challenge, for example a login of the session, or a login to a proxy.
    func sideAwaitingVerdict(_ hop: HopState, _ context: inout FetchContext) -> Side? {
        for side in Side.allCases {
            if let attempt = outgoing[side] {
                if !beginAttempt(attempt, hop, &context) { return side }
            } else if let challenger = hop.chain.challenger(at: side) {
                // The fetch may have waited to send a login that it no longer has.
                context.queues.endAttempt(by: hop.fetch.id, at: challenger, now: context.now)
            }
        }
        return nil
    }

    /// Applies an update about the login at `side`, for whose verdict this fetch has waited. If the fetch is admitted, it
    /// sends the login. All other logins are dropped if they were refused or are preemptive; `prepare` chooses preemptive
    /// logins again.
    mutating func recordVerdict(
        _ news: AuthenticationQueues.QueueUpdate, at side: Side, _ hop: HopState, _ context: FetchContext
    ) {
        var admitted: Side?
        if case .admitted(let provenAt) = news {
            admitted = side
            if let provenAt { outgoing[side]?.recordProof(at: provenAt) }
            renewNonce(at: side, context)
        }
        for other in Side.allCases where other != admitted {
            guard let attempt = outgoing[other] else { continue }
            if attempt.isPreemptive || isRefusedMeanwhile(attempt, hop, context) { outgoing[other] = nil }
        }
    }

    /// Whether the server has refused the credential to another fetch since this one began.
    func isRefusedMeanwhile(_ attempt: Attempt, _ hop: HopState, _ context: FetchContext) -> Bool {
        context.refusals.hasRefused(
            attempt.credential, in: attempt.space, hop.steering(to: attempt.challenger),
            since: hop.fetch.refusalBaseline)
    }

    /// Makes the next request log in anew, because the connection that had logged in has ended.
    mutating func logInAgain(_ hop: HopState, _ context: FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side] else { continue }
            // guard: login-again-refused-meanwhile
            if isRefusedMeanwhile(attempt, hop, context) {
                outgoing[side] = nil
            } else {
                outgoing[side]?.needsNewConnection = true
            }
        }
    }

    /// Uses the nonce with which another fetch has logged in meanwhile: the previous one may be refused.
    private mutating func renewNonce(at side: Side, _ context: FetchContext) {
        guard let attempt = outgoing[side], attempt.isPreemptive, attempt.challenge.digest != nil,
            let newer = context.session.digest(of: attempt.credential, for: attempt.space, owner: attempt.partition)
        else { return }
        outgoing[side]?.challenge = .digest(newer)
    }

    /// Whether the request needs a new connection. On a connection that has logged in earlier, a changed password would
    /// go unnoticed.
    func needsNewConnection(now: Duration, _ hop: HopState) -> Bool {
        func isOld(_ attempt: Attempt?) -> Bool {
            if attempt?.needsNewConnection == true { return true }
            guard let attempt, attempt.challenge != .negotiate, let provenAt = attempt.provenAt else { return false }
            return now - provenAt >= Limits.connectionAge
        }
        return isOld(outgoing.handshake?.attempt) || hop.chain.isTunnel && isOld(outgoing.proxy)
    }

    /// Records in the audit log each login that the next request contains, unless that use is recorded already.
    mutating func auditUses(_ hop: HopState, _ context: inout FetchContext) {
        for side in Side.allCases where outgoing[side]?.isAudited == false {
            outgoing[side]?.isAudited = true
            guard let attempt = outgoing[side] else { continue }
            hop.audit(.credentialUsed, attempt, &context)
        }
    }
}
