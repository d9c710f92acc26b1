internal import WatchwordProtocol

/// Who may look for a credential for a protection space, ask about it, and try what was found: one fetch at a time. The
/// others wait, and share what comes of it (semantics rules 20 to 22).
///
/// Without I/O: what a waiting fetch has to be told collects in `wakes`, for whoever runs the fetches.
struct SpaceTurns: Sendable {
    /// One waiting line.
    struct Key: Sendable, Hashable {
        enum Purpose: Sendable, Hashable {
            /// Looking up, asking, and trying what comes of it.
            case find
            /// Trying what the fetch brought along.
            case own
        }

        var space: ProtectionSpace
        var purpose: Purpose
        /// A fetch that names a user is not served by another user's credential.
        var user: Account?
        /// Set where a fetch shares nothing with other clients.
        var client: Partition?
        /// What is stored is not for a fetch without storage, also where both are of one client.
        var usesStorage: Bool
        /// The hash of the key about which the question is: only the identical certificate is one question.
        var certificate: [UInt8]?
        /// What a token is asked for: one for something else answers another question (semantics rule 29).
        var scope: BearerScope?
    }

    /// What the others may use as well.
    enum Found: Sendable, Equatable {
        case login(LoginCredential, CredentialSource)
        case trust(TrustDecision)
        case certificate(CertificateCredential, CredentialSource)
    }

    /// Whose fetch takes or waits for a turn.
    struct Client: Sendable, Equatable {
        let tag: ClientTag
        /// `nil` for a program that has no other client.
        let program: ProgramTag?

        func isOfSameProgram(as other: Client) -> Bool {
            tag == other.tag || program != nil && program == other.program
        }
    }

    /// Where a fetch waits.
    enum WaitingPlace: Sendable, Hashable {
        case line(Key)
        /// For the verdict on a credential that another fetch has sent.
        case trial
    }

    /// Why a fetch gave back its turn.
    enum Outcome: Sendable, Equatable {
        /// The server took it, or nobody but the one who answered has a say in it.
        case accepted(Found)
        /// The answer `continue`: nobody logs in.
        case proceed
        /// The answer `cancel`.
        case cancelled(by: Respondent)
        /// The answer `reject`.
        case rejected(by: Respondent)
        /// These had no answer; without any, the fetch just ended or went elsewhere.
        case passed(declined: PassedRespondents)
    }

    /// What a waiting fetch is told.
    enum News: Sendable, Equatable {
        /// It has the turn now.
        case turn
        /// This was accepted meanwhile. Where it is not shared, it is only for a fetch that has the same one by itself.
        case accepted(Found, isShared: Bool)
        case proceed
        /// Its own client has cancelled, or an agent for all for whom it was asked.
        case cancelled(isOwn: Bool)
        /// The same with the scheme.
        case rejected(isOwn: Bool)
        /// There may be a credential at hand now.
        case lookAgain
        /// The server has just accepted the credential whose verdict the fetch waited for.
        case proven
        /// See `CredentialTrials.Verdict.taken`.
        case taken
    }

    struct Wake: Sendable, Equatable {
        var fetch: FetchID
        var news: News
        /// The respondents that gave no credential to those before.
        var declined: PassedRespondents
    }

    private struct Waiter: Sendable {
        let fetch: FetchID
        let client: Client
        let waitsForPeople: Bool
        var declined = PassedRespondents()
    }

    private struct Line: Sendable {
        var holder: FetchID
        let client: Client
        var activity = HolderActivity()
        var waiters: [Waiter] = []
    }

    private var lines: [Key: Line] = [:]
    private var trials = CredentialTrials()
    private(set) var wakes: [Wake] = []

    var waitingCount: Int {
        lines.values.reduce(0) { $0 + $1.waiters.count } + trials.waitingCount
    }

    enum Taking: Sendable, Equatable {
        case taken
        /// The fetch waits now.
        case queued
        /// A person is asked, for whom this fetch does not wait.
        case questionOpen
    }

    /// Takes the turn, if it is free or the fetch's already; else a place in the line, unless a person is asked and the fetch
    /// does not wait for people.
    mutating func take(_ key: Key, for fetch: FetchID, of client: Client, waitsForPeople: Bool = true) -> Taking {
        guard let line = lines[key] else {
            lines[key] = Line(holder: fetch, client: client)
            return .taken
        }
        if line.holder == fetch { return .taken }
        if line.activity.reason == .question && !waitsForPeople { return .questionOpen }
        lines[key]?.waiters.append(Waiter(fetch: fetch, client: client, waitsForPeople: waitsForPeople))
        return .queued
    }

    /// The holder of a turn asks a person now, or has stopped asking. Returns the fetches that go on waiting for it, where that is
    /// something new; those that do not wait for people are woken.
    mutating func noteActivity(
        in key: Key, of fetch: FetchID, _ reason: FetchWait.Reason, _ now: Duration
    ) -> [FetchID] {
        guard lines[key]?.holder == fetch, lines[key]?.activity.note(reason, now: now) == true else { return [] }
        if reason == .question {
            for waiter in lines[key]?.waiters ?? [] where !waiter.waitsForPeople { wake(waiter, .lookAgain) }
            lines[key]?.waiters.removeAll { !$0.waitsForPeople }
        }
        return lines[key]?.waiters.map(\.fetch) ?? []
    }

    /// What a fetch waits for at `place`.
    func wait(of fetch: FetchID, at place: WaitingPlace) -> FetchWait? {
        switch place {
        case .trial: trials.wait(of: fetch)
        case .line(let key):
            lines[key].map {
                FetchWait(reason: $0.activity.reason ?? .trial, space: key.space, since: $0.activity.since)
            }
        }
    }

    func holds(_ key: Key, _ fetch: FetchID) -> Bool { lines[key]?.holder == fetch }

    /// The holder's last word.
    mutating func release(_ key: Key, by fetch: FetchID, _ outcome: Outcome) {
        guard var line = lines[key], line.holder == fetch else { return }
        let client = line.client
        switch outcome {
        case .accepted(let found):
            // Rule 17: what is for this time only is for this program only; the others are asked themselves.
            let served = line.waiters.filter { waiter in
                key.purpose == .own || found.isForAll || waiter.client.isOfSameProgram(as: client)
            }
            for waiter in served {
                let isShared = found.isForAll || waiter.client.isOfSameProgram(as: client)
                wake(waiter, .accepted(found, isShared: isShared))
            }
            line.waiters.removeAll { waiter in served.contains { $0.fetch == waiter.fetch } }
        case .proceed:
            lines[key] = nil
            for waiter in line.waiters { wake(waiter, .proceed) }
            return
        case .cancelled(let respondent), .rejected(let respondent):
            let isForAll = respondent == .agents
            for waiter in line.waiters where isForAll || waiter.client.tag == client.tag {
                let isOwn = waiter.client.tag == client.tag
                wake(waiter, outcome == .cancelled(by: respondent) ? .cancelled(isOwn: isOwn) : .rejected(isOwn: isOwn))
            }
            line.waiters.removeAll { isForAll || $0.client.tag == client.tag }
        case .passed(let declined):
            for index in line.waiters.indices {
                let isSame = line.waiters[index].client.tag == client.tag
                line.waiters[index].declined.formUnion(isSame ? declined.forOtherFetches : declined.forOtherClients)
            }
        }
        guard let next = line.waiters.first else {
            lines[key] = nil
            return
        }
        line.waiters.removeFirst()
        lines[key] = Line(holder: next.fetch, client: next.client, waiters: line.waiters)
        wake(next, .turn)
    }

    /// A waiting fetch has ended.
    mutating func leave(_ fetch: FetchID, from place: WaitingPlace) {
        switch place {
        case .line(let key): lines[key]?.waiters.removeAll { $0.fetch == fetch }
        case .trial: trials.leave(fetch)
        }
    }

    // MARK: Trials

    /// See `CredentialTrials.begin`.
    /// - Parameter isKnown: the server has accepted the credential before.
    mutating func beginTrial(
        of credential: LoginCredential, in space: ProtectionSpace, by fetch: FetchID, isKnown: Bool, now: Duration
    ) -> Bool {
        let patience = isKnown ? Limits.knownVerdictWait : Limits.verdictWait
        return trials.begin(credential, in: space, by: fetch, patience: patience, now: now)
    }

    /// The verdict on what was sent for `space`, or for any where that is `nil`, has come, or never will.
    mutating func endTrial(
        by fetch: FetchID, in space: ProtectionSpace? = nil, _ verdict: CredentialTrials.Verdict = .none
    ) {
        let news: News =
            switch verdict {
            case .accepted: .proven
            case .taken: .taken
            case .refused, .none: .lookAgain
            }
        for waiter in trials.end(by: fetch, in: space, verdict) {
            wakes.append(Wake(fetch: waiter, news: news, declined: []))
        }
    }

    /// When a fetch that waits for a verdict need not wait for it any longer.
    func patienceEnd(of fetch: FetchID) -> Duration? { trials.patienceEnd(of: fetch) }

    /// The session has got a credential for `space` past the line: those who wait may use it.
    mutating func credentialArrived(for space: ProtectionSpace, owner: Partition?) {
        for key in Array(lines.keys)
        where key.space == space && key.purpose == .find && key.usesStorage && (owner == nil || key.client == owner) {
            guard let waiters = lines[key]?.waiters, !waiters.isEmpty else { continue }
            lines[key]?.waiters = []
            for waiter in waiters { wake(waiter, .lookAgain) }
        }
    }

    mutating func takeWakes() -> [Wake] {
        defer { wakes = [] }
        return wakes
    }

    private mutating func wake(_ waiter: Waiter, _ news: News) {
        wakes.append(Wake(fetch: waiter.fetch, news: news, declined: waiter.declined))
    }
}

extension SpaceTurns.Found {
    /// Whether it may serve programs that wait beside the one that was asked (semantics rule 17).
    fileprivate var isForAll: Bool {
        switch self {
        case .login(let credential, _): credential.persistence != .none
        case .trust(let decision): decision.persistence != .none
        case .certificate(let certificate, _): certificate.persistence != .none
        }
    }
}
