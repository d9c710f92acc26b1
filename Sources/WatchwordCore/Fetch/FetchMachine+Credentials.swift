internal import WatchwordProtocol

/// A credential that may be tried, and where it came from.
struct Candidate: Sendable, Equatable {
    var credential: LoginCredential
    var source: CredentialSource
    /// See `Attempt.item`.
    var item: String?
    /// See `Attempt.home`.
    var home: Partition?
    /// When the server last accepted it; `nil` where that is not known.
    var provenAt: Duration?
    /// Somebody has answered with it.
    var isAnswer = false
    /// Who has brought it, where it did not come from what is stored.
    var respondent: Respondent?
    /// When the login with it began, among what was forgotten by hand; `nil` before.
    var mark: ForgetLog.Mark?

    init(credential: LoginCredential, source: CredentialSource, item: String? = nil, home: Partition?) {
        self.credential = credential
        self.source = source
        self.item = item
        self.home = home
    }
}

/// Where credentials come from, and what becomes of them: semantics rules 15 to 19 and 23 to 25.
extension FetchMachine {
    /// What came with the fetch is for the origin, or the proxy, that it was given for (semantics rule 23).
    func isMeant(_ challenger: Challenger) -> Bool {
        switch (challenger, plan.proxy) {
        case (.server(let origin), _): origin == plan.url.origin
        case (.proxy(let endpoint), .named(let named)): endpoint == named
        case (.proxy, _): false
        }
    }

    /// A fetch that names a user is never made as another one.
    func namedUser(at challenger: Challenger) -> Account? {
        guard isMeant(challenger) else { return nil }
        return challenger.isProxy ? plan.proxyCredential?.shownAccount : plan.namedUser
    }

    /// Where a credential has to be good: to a proxy paths mean nothing.
    func path(at challenger: Challenger) -> ExactText { challenger.isProxy ? "/" : hop.url.path }

    /// Why a credential is not sent here and now, whatever the scheme.
    func problem(
        with credential: LoginCredential, at challenger: Challenger, _ context: FetchContext
    ) -> Challenge.AnswerProblem? {
        if credential.isExpired(at: context.session.wallTime) { return .credentialExpired }
        return credential.covers(path(at: challenger)) ? nil : .credentialForOtherPath
    }

    /// Whether the keyring may have something for a narrower path, which goes first (semantics rule 18).
    private func isNarrowerStored(
        than credential: LoginCredential, in space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        let challenger = Challenger(space)
        guard keyringItems(at: challenger, context) != nil || context.keyring.isWorthAsking(now: context.now) else {
            return false
        }
        return context.keyring.paths.hasNarrower(
            than: credential, for: path(at: challenger), in: space, user: namedUser(at: challenger))
    }

    // MARK: Before a challenge

    /// Before a challenge only the session cache may speak (semantics rule 16).
    func preemptiveAttempt(
        at challenger: Challenger, _ context: FetchContext
    ) -> Attempt? {
        guard plan.preemption != .never else { return nil }
        var found: SessionEntry?
        for part in access.readable where found == nil {
            found = context.session.preemptiveEntry(
                at: challenger, path: path(at: challenger), user: namedUser(at: challenger),
                owner: part, now: context.now)
        }
        guard let entry = found, mightUseStorage(for: entry.space, context),
            // Where the client decides what is sent, it is asked about the challenge first.
            !asksFirst(in: entry.space),
            plan.methods?.contains(entry.space.authenticationMethod) ?? true,
            context.environment.schemes.allow(entry.space.authenticationMethod, at: challenger),
            !target(challenger).hasRefused(entry.credential, in: entry.space),
            !isNarrowerStored(than: entry.credential, in: entry.space, context),
            !context.refusals.hasRefused(entry.credential, in: entry.space, since: lastRefusalBefore),
            agreesWithFetch(entry.credential, challenger),
            entry.digest.map({ context.session.nonces.remembers($0, at: challenger) }) ?? true
        else { return nil }
        let attempt = Attempt(entry, mark: context.forgets.mark)
        guard access.subject == nil || isConsented(attempt, context),
            !isDowngrade(attempt.challenge, challenger, context)
        else { return nil }
        return attempt
    }

    /// Whether a cached credential is what the fetch itself would send; true where the fetch names nobody.
    private func agreesWithFetch(_ cached: LoginCredential, _ challenger: Challenger) -> Bool {
        guard isMeant(challenger) else { return true }
        if let own = challenger.isProxy ? plan.proxyCredential : plan.credential { return own.isSame(as: cached) }
        guard !challenger.isProxy, let userInfo = plan.userInfo else { return true }
        return Account(user: userInfo.user).admits(cached.account)
            && (userInfo.password.map { $0 == cached.secret } ?? true)
    }

    // MARK: After a challenge

    /// What came with the fetch: its own credential, then the URL's; and the tickets of the user, where nobody else is named.
    func ownCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        var own: [Candidate] = []
        if isMeant(challenger) {
            if let credential = challenger.isProxy ? plan.proxyCredential : plan.credential {
                own.append(Candidate(credential: credential, source: .explicit, home: access.home))
            }
            if !challenger.isProxy, let userInfo = plan.userInfo, let password = userInfo.password {
                let credential = LoginCredential(user: userInfo.user, password: password)
                own.append(Candidate(credential: credential, source: .url, home: access.home))
            }
        }
        if challenge == .negotiate, own.isEmpty, namedUser(at: challenger) == nil, mayUseStorage(for: space, context) {
            let tickets = LoginCredential(form: .tickets, secret: Secret(capacity: 0) { _ in 0 })
            own.append(Candidate(credential: tickets, source: .ambient, home: access.home))
        }
        return own.first { isUsable($0, for: challenge, in: space, context) }
    }

    /// What a server has accepted in this session.
    func acceptedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard mayUseStorage(for: space, context), !isDowngrade(challenge, challenger, context) else { return nil }
        for part in access.readable {
            let known = context.session.credential(
                for: space, user: namedUser(at: challenger), owner: part, at: challenger,
                path: path(at: challenger), scope: challenge.scope, now: context.now)
            guard let known, !isNarrowerStored(than: known, in: space, context) else { continue }
            var candidate = Candidate(credential: known, source: .session, home: part)
            candidate.provenAt = context.session.provenAt(known, for: space, owner: part)
            if isUsable(candidate, for: challenge, in: space, context) { return candidate }
        }
        return nil
    }

    /// What is stored, and has not been accepted yet: in the session, or in the keyring.
    /// - Parameter isForWeaker: whether what is not for this challenge, because the server has done better, counts as well.
    func storedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, isForWeaker: Bool = false,
        _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard mayUseStorage(for: space, context) else { return nil }
        let user = namedUser(at: challenger)
        let isStrongEnough = { (pattern: SpacePattern) in
            isForWeaker || !isDowngrade(challenge, challenger, context, AcceptedStrength.Reach(pattern))
        }
        // Nothing says that what is stored was for a scheme as weak as this: rule 27.
        let isUnmarked = challenge.digest?.protection == .legacy || space.lacksRealm
        for part in access.readable {
            // A doubted one was accepted in this very realm.
            let isOfRealm = isForWeaker || !isDowngrade(challenge, challenger, context)
            let doubted =
                isOfRealm
                ? context.session.doubtedCredential(for: space, user: user, owner: part, now: context.now) : nil
            let given =
                doubted
                ?? context.session.givenCredential(
                    for: space, user: user, owner: part, path: path(at: challenger), now: context.now
                ) { (isForWeaker || !isUnmarked) && isStrongEnough($0) }
            guard let given, !isNarrowerStored(than: given, in: space, context) else { continue }
            let candidate = Candidate(credential: given, source: .session, home: part)
            if isUsable(candidate, for: challenge, in: space, context) { return candidate }
        }
        guard isForWeaker || !isUnmarked else { return nil }
        guard
            case .credential(let credential, let item, let isExact) = keyringFinding(
                in: space, context, where: isStrongEnough),
            !context.keyring.hasRefused(credential, in: space, now: context.now)
        else { return nil }
        let candidate = Candidate(
            credential: credential, source: .keyring, item: isExact ? item : nil, home: access.homeOfKeyring)
        return isUsable(candidate, for: challenge, in: space, context) ? candidate : nil
    }

    /// What the items of the keyring, as far as they were looked up, come to for `space`.
    func keyringFinding(
        in space: ProtectionSpace, _ context: FetchContext, where isMeant: (SpacePattern) -> Bool
    ) -> KeyringFinding {
        let challenger = Challenger(space)
        return KeyringFinding(
            KeyringMatches(
                keyringItems(at: challenger, context) ?? [], at: challenger, path: path(at: challenger),
                user: namedUser(at: challenger), time: context.session.wallTime
            ) { $0.matches(space) && isMeant($0) }
        ) { $0.isExact(for: space) }
    }

    /// `nil` before they were looked up, and when something was forgotten since then.
    func keyringItems(at challenger: Challenger, _ context: FetchContext) -> [KeyringItem]? {
        target(challenger).keyringItems.flatMap { $0.mark == context.forgets.mark ? $0.items : nil }
    }

    func isDowngrade(
        _ challenge: AnswerableChallenge, _ challenger: Challenger, _ context: FetchContext,
        _ reach: AcceptedStrength.Reach = .realm
    ) -> Bool {
        context.session.nonces.accepted.isDowngrade(
            challenge, at: challenger, path: path(at: challenger), reach: reach)
    }

    func isUsable(
        _ candidate: Candidate, for challenge: AnswerableChallenge, in space: ProtectionSpace,
        _ context: FetchContext
    ) -> Bool {
        let challenger = Challenger(space)
        return challenge.canCarry(candidate.credential, at: challenger)
            && problem(with: candidate.credential, at: challenger, context) == nil
            && !target(challenger).hasRefused(candidate.credential, in: space)
            && !target(challenger).isTooNarrow(candidate.credential, for: challenge)
            && !isRefused(candidate, in: space, context)
    }

    // MARK: What becomes of them

    /// Rule 17: stored values go only if they are the refused ones.
    mutating func note(
        _ attempt: Attempt, refusedWith offers: OfferList, _ context: inout FetchContext
    ) {
        let challenger = attempt.challenger
        let sent = attempt.space
        let attempt = attempt.named(by: offers)
        let spaces = offers.answerable.map { $0.protectionSpace(at: challenger) }
        // Sent on a guess by path into a part of the server that has another realm: nobody looked at the password.
        if attempt.isPreemptive && !spaces.contains(attempt.space) {
            return context.turns.endTrial(by: id, in: sent)
        }
        context.turns.endTrial(by: id, in: sent, .refused)
        targets[challenger, default: TargetRecord()].noteRefusal(of: attempt)
        note(.credentialRefused, attempt, &context)
        judge(attempt, isAccepted: false, &context)
        let login = ConnectionMarks.Login(attempt)
        context.identities.forget { $0.handshake == login || $0.tunnel == login }
        if attempt.challenge == .negotiate {
            // Whatever is wrong with the tickets, it is no wrong password.
            targets[challenger, default: TargetRecord()].asksBeforeWeaker = true
        }
        let key =
            heldTurns[TurnSlot(attempt.space)]
            ?? turnKey(for: attempt.space, .find, scope: attempt.challenge.scope, context)
        context.refusals.note(attempt.credential, attempt.source, in: key)
        if attempt.space != sent {
            context.refusals.note(attempt.credential, attempt.source, in: turnKey(for: sent, .own, context))
        }
        // Through a proxy that forwards, a server can say 407 too: what the proxy has taken before is not lost over that.
        let isDoubtful =
            attempt.space.proxyType != nil && !isTunnel && (attempt.isAccepted || attempt.source == .session)
        guard mayUseStorage(for: attempt.space, context) else { return }
        guard !isDoubtful else {
            return context.session.doubt(attempt.credential, for: attempt.space, owner: attempt.home)
        }
        if context.session.forget(attempt.credential, for: attempt.space, owner: attempt.home, at: challenger) {
            context.add(.changed(CredentialChange(.forgotten, attempt, in: .session)))
        }
        if [.keyring, .netrc].contains(attempt.source) {
            context.keyring.noteRefusal(
                of: attempt.credential, in: attempt.space, isOfNetrc: attempt.source == .netrc, now: context.now)
            if let item = attempt.item, !attempt.isCalledStale(by: offers) {
                context.add(.remove(item: item, attempt.credential))
            }
        }
    }

    /// The token is not good for this, and may be for all else: it stays, and is not sent again for the same in this fetch
    /// (semantics rule 29).
    mutating func noteTooNarrow(_ attempt: Attempt, for wanted: AnswerableChallenge, _ context: inout FetchContext) {
        context.turns.endTrial(by: id, in: attempt.space)
        targets[attempt.challenger, default: TargetRecord()].noteTooNarrow(attempt.credential, for: wanted)
    }

    /// Nothing is written before the server has accepted it.
    mutating func remember(
        _ attempt: Attempt, path: ExactText, isProven: Bool, _ context: inout FetchContext
    ) {
        guard mayUseStorage(for: attempt.space, context), attempt.credential.persistence != .none,
            attempt.mayBeRemembered
        else { return }
        if [.client, .agent].contains(attempt.source) { context.keyring.noteAnswer(for: path, in: attempt.space) }
        var credential = attempt.credential
        if credential.form == .token, credential.scope == nil { credential.scope = attempt.challenge.scope }
        let wasGiven = context.session.wasGiven(credential, for: attempt.space)
        let isNews = context.session.remember(
            credential, for: attempt.space, owner: attempt.home,
            by: isBrought(attempt.source) ? access.holder : nil,
            path: path, digest: attempt.challenge.digest, isProven: isProven, now: context.now)
        if isNews {
            if !wasGiven { context.add(.changed(CredentialChange(.stored, attempt, in: .session))) }
            context.keyring.forgetRefusals(in: attempt.space, accepting: credential)
            context.turns.credentialArrived(for: attempt.space, owner: attempt.home)
        }
        // Whoever was asked may want to keep for good what the session has already; those who waited for it ask for nothing.
        guard isNews || heldTurns[TurnSlot(attempt.space)] != nil else { return }
        if attempt.credential.persistence == .permanent, attempt.credential.form == .password,
            !attempt.space.lacksRealm,
            context.keyring.mayStore(from: attempt.source, now: context.now), mayKeepForGood(attempt.source)
        {
            context.add(.store(attempt.credential, SpacePattern(attempt.space)))
        }
    }
}

extension CredentialChange {
    init(_ kind: Kind, _ attempt: Attempt, in source: CredentialSource) {
        self.init(kind, SpacePattern(attempt.space), user: attempt.credential.shownUser, source: source)
    }
}

extension Attempt {
    /// Of what the session has, before any challenge.
    fileprivate init(_ entry: SessionEntry, mark: ForgetLog.Mark) {
        let challenge: AnswerableChallenge =
            if let digest = entry.digest {
                .digest(digest)
            } else if entry.space.authenticationMethod == .bearer {
                .bearer(realm: entry.space.realm, scope: entry.credential.scope)
            } else if entry.space.proxyType == .socks {
                .socks
            } else {
                .basic(realm: entry.space.realm)
            }
        self.init(
            challenge, entry.space, Candidate(credential: entry.credential, source: .session, home: entry.owner))
        isPreemptive = true
        provenAt = entry.provenAt
        self.mark = mark
    }
}
