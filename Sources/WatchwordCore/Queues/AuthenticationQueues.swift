internal import WatchwordProtocol

/// Queues of fetches that need a credential for the same protection space. One fetch in each queue holds the lease: it
/// looks up a credential, asks for one, and tries it. The others wait and share the result (SEMANTICS rules 20 to 22).
///
/// Performs no I/O: updates for waiting fetches accumulate in `wakes` until the caller calls `takeWakes()`.
public struct AuthenticationQueues: Sendable {
    /// Identifies one queue.
    struct Key: Sendable, Hashable {
        enum Purpose: Sendable, Hashable {
            /// Looking up a credential, asking for one, and trying it.
            case find
            /// Trying a credential supplied with the fetch.
            case own
        }

        var space: ProtectionSpace
        var purpose: Purpose
        /// The user that the fetch names, if any. A credential of another user does not serve the fetch.
        var user: Account?
        /// The partition within which results are shared; `nil` if all programs share them.
        var client: Partition?
        /// Whether the fetch may use stored credentials. Fetches without storage have separate queues, even within one
        /// client.
        var usesStorage: Bool
        /// The SHA-256 hash of the server certificate to decide on. Only fetches that received the identical
        /// certificate share a question.
        var certificate: [UInt8]?
        /// The scope that a token needs; a token for another scope does not serve this fetch (SEMANTICS rule 29).
        var scope: BearerScope?
        var steering: Steering?
    }

    /// The choices of a fetch that decide which server it reaches under the name in its URL. Only fetches with equal
    /// choices share an answer (SEMANTICS rule 20).
    struct Steering: Sendable, Hashable {
        /// The proxy that the fetch names.
        var proxy: ProxyEndpoint?
        /// The SHA-256 hash of the public key of a certificate that is accepted by exception.
        var exceptionalKey: [UInt8]?
    }

    /// A result that the waiting fetches may use as well.
    enum SharedDecision: Sendable, Equatable {
        case login(LoginCredential, CredentialSource)
        case trust(TrustDecision)
        case certificate(CertificateCredential, CredentialSource)
    }

    /// The client whose fetch acquires or waits for a lease.
    struct Client: Sendable, Equatable {
        let tag: ClientTag
        /// `nil` for a program that has no other connection.
        let program: ProgramTag?

        func isOfSameProgram(as other: Client) -> Bool {
            tag == other.tag || program != nil && program == other.program
        }
    }

    /// The queue or the verdict that a fetch waits for.
    enum QueuePosition: Sendable, Hashable {
        case queue(Key)
        /// The verdict on a credential that another fetch has sent.
        case attempt
    }

    /// The result with which a fetch releases its lease.
    enum Outcome: Sendable, Equatable {
        /// The server accepted the credential, or a respondent decided to trust a server certificate.
        case accepted(SharedDecision)
        /// The answer `continue`: the fetches proceed without logging in.
        case proceed
        /// The answer `cancel`.
        case cancelled(by: Respondent)
        /// The answer `reject`.
        case rejected(by: Respondent)
        /// The respondents that supplied no credential; empty if the fetch ended or continued without asking.
        case passed(declined: PassedRespondents)
    }

    /// An update for a waiting fetch.
    enum QueueUpdate: Sendable, Equatable {
        /// The fetch holds the lease now.
        case lease
        /// Another fetch's result was accepted. Unless `isShared`, only a fetch that has the same credential itself may
        /// use it.
        case accepted(SharedDecision, isShared: Bool)
        case proceed
        /// The question was cancelled: by its client for that client's fetches, or by an agent for all waiting fetches.
        /// `isOwn`: the waiting fetch belongs to the same client as the fetch with the question.
        case cancelled(isOwn: Bool)
        /// Like `cancelled`, for the answer `reject`.
        case rejected(isOwn: Bool)
        /// The fetch looks up credentials again: one may be available now, or the fetch can no longer wait.
        case retryLookup
        /// The fetch may send the credential that it waited to send, which the server has accepted at this time; `nil` if
        /// this session has not seen that.
        case admitted(provenAt: Duration?)
    }

    /// A waiting fetch to resume, and the reason.
    public struct Wake: Sendable, Equatable {
        var fetch: FetchID
        var news: QueueUpdate
        /// The respondents that supplied no credential to the previous holders.
        var declined: PassedRespondents
    }

    private struct Waiter: Sendable {
        let fetch: FetchID
        let client: Client
        let waitsForPeople: Bool
        /// Whether the fetch cannot send the credential that the holder tries.
        var cannotTry = false
        var declined = PassedRespondents()
    }

    /// The credential that the holder of a lease has sent.
    struct Trial: Sendable {
        let login: InFlightAttempts.Login
        let source: CredentialSource
    }

    private struct Queue: Sendable {
        var holder: FetchID
        let client: Client
        var activity = HolderActivity()
        var trial: Trial?
        var waiters: [Waiter] = []
    }

    private var queues: [Key: Queue] = [:]
    private var inFlightAttempts = InFlightAttempts()
    private(set) var wakes: [Wake] = []

    var waitingCount: Int {
        queues.values.reduce(0) { $0 + $1.waiters.count } + inFlightAttempts.waitingCount
    }

    /// Whether no fetch holds a lease.
    var isEmpty: Bool { queues.isEmpty }

    /// The result of `take`.
    enum LeaseResult: Sendable, Equatable {
        case taken
        /// The fetch was enqueued.
        case queued
        /// A person is being asked, and this fetch does not wait for people; it was not enqueued.
        case questionOpen
    }

    /// Acquires the lease if it is free or already held by `fetch`; otherwise enqueues the fetch, unless a person is
    /// being asked and the fetch does not wait for people.
    mutating func take(_ key: Key, for fetch: FetchID, of client: Client, waitsForPeople: Bool = true) -> LeaseResult {
        guard let queue = queues[key] else {
            queues[key] = Queue(holder: fetch, client: client)
            return .taken
        }
        if queue.holder == fetch { return .taken }
        if queue.activity.reason == .question && !waitsForPeople { return .questionOpen }
        queues[key]?.waiters.append(Waiter(fetch: fetch, client: client, waitsForPeople: waitsForPeople))
        return .queued
    }

    /// Records whether the holder of the lease is asking a person. If this changed, returns the fetches that continue
    /// to wait. When a question begins, wakes the fetches that do not wait for people.
    mutating func recordActivity(
        in key: Key, of fetch: FetchID, _ reason: FetchWait.Reason, _ now: Duration
    ) -> [FetchID] {
        guard queues[key]?.holder == fetch, queues[key]?.activity.record(reason, now: now) == true else { return [] }
        if reason == .question {
            queues[key]?.trial = nil
            for waiter in queues[key]?.waiters ?? [] where !waiter.waitsForPeople { wake(waiter, .retryLookup) }
            queues[key]?.waiters.removeAll { !$0.waitsForPeople }
        }
        return queues[key]?.waiters.map(\.fetch) ?? []
    }

    func wait(of fetch: FetchID, at place: QueuePosition) -> FetchWait? {
        switch place {
        case .attempt: inFlightAttempts.wait(of: fetch)
        case .queue(let key):
            queues[key].map {
                FetchWait(reason: $0.activity.reason ?? .trial, space: key.space, since: $0.activity.since)
            }
        }
    }

    /// Releases the lease held by `fetch`, wakes waiting fetches according to `outcome`, and passes the lease to the
    /// next fetch that still waits.
    mutating func release(_ key: Key, by fetch: FetchID, _ outcome: Outcome) {
        guard var queue = queues[key], queue.holder == fetch else { return }
        let client = queue.client
        switch outcome {
        case .accepted(let found):
            // SEMANTICS rule 17: a credential with persistence `none` serves only this program; other programs are
            // asked separately.
            let served = queue.waiters.filter { waiter in
                key.purpose == .own || found.isForAll || waiter.client.isOfSameProgram(as: client)
            }
            for waiter in served {
                let isShared = found.isForAll || waiter.client.isOfSameProgram(as: client)
                wake(waiter, .accepted(found, isShared: isShared))
            }
            queue.waiters.removeAll { waiter in served.contains { $0.fetch == waiter.fetch } }
        case .proceed:
            queues[key] = nil
            for waiter in queue.waiters { wake(waiter, .proceed) }
            return
        case .cancelled(let respondent), .rejected(let respondent):
            let isForAll = respondent == .agents
            for waiter in queue.waiters where isForAll || waiter.client.tag == client.tag {
                let isOwn = waiter.client.tag == client.tag
                wake(waiter, outcome == .cancelled(by: respondent) ? .cancelled(isOwn: isOwn) : .rejected(isOwn: isOwn))
            }
            queue.waiters.removeAll { isForAll || $0.client.tag == client.tag }
        case .passed(let declined):
            for index in queue.waiters.indices {
                let isSame = queue.waiters[index].client.tag == client.tag
                // guard: silence-is-inherited-by-the-same-client-only
                queue.waiters[index].declined.formUnion(isSame ? declined.forOtherFetches : declined.forOtherClients)
            }
        }
        guard let next = queue.waiters.first else {
            queues[key] = nil
            return
        }
        queue.waiters.removeFirst()
        for index in queue.waiters.indices { queue.waiters[index].cannotTry = false }
        queues[key] = Queue(holder: next.fetch, client: next.client, waiters: queue.waiters)
        wake(next, .lease)
    }

    /// Removes a fetch that no longer waits.
    mutating func leave(_ fetch: FetchID, from place: QueuePosition) {
        switch place {
        case .queue(let key): queues[key]?.waiters.removeAll { $0.fetch == fetch }
        case .attempt: inFlightAttempts.leave(fetch)
        }
    }

    // MARK: In-flight attempts

    /// See `InFlightAttempts.begin`.
    mutating func beginAttempt(of login: InFlightAttempts.Login, by fetch: FetchID, now: Duration) -> Bool {
        endAttempt(by: fetch, at: Challenger(login.space), except: login, now: now)
        return inFlightAttempts.begin(login, by: fetch, now: now)
    }

    /// See `InFlightAttempts.end`.
    mutating func endAttempt(
        by fetch: FetchID, at challenger: Challenger, except login: InFlightAttempts.Login? = nil, now: Duration
    ) {
        resume(inFlightAttempts.end(by: fetch, at: challenger, except: login, now: now))
    }

    /// Ends the in-flight attempts of `fetch` in `space`, or in every space if `space` is `nil`, and wakes the fetches
    /// that may now send the credential, or waited for its verdict.
    mutating func endAttempt(
        by fetch: FetchID, in space: ProtectionSpace? = nil, _ verdict: InFlightAttempts.Verdict = .none, now: Duration
    ) {
        resume(inFlightAttempts.end(by: fetch, in: space, verdict, now: now))
    }

    private mutating func resume(_ woken: [InFlightAttempts.Woken]) {
        for waiter in woken {
            let news: QueueUpdate =
                switch waiter.news {
                case .admitted(let provenAt): .admitted(provenAt: provenAt)
                case .refused: .retryLookup
                }
            wakes.append(Wake(fetch: waiter.fetch, news: news, declined: []))
        }
    }

    mutating func forgetEndedAttempts() { inFlightAttempts.forgetEnded() }

    mutating func expire(now: Duration) { inFlightAttempts.expire(now: now) }

    /// Whether time alone changes the state of attempts.
    var hasAttempts: Bool { !inFlightAttempts.isEmpty }

    // MARK: Slow verdicts

    /// Records what the holder of a lease has sent. Returns the fetches that wait for the verdict, and may send it
    /// themselves after a time.
    mutating func recordTrial(_ trial: Trial, in key: Key, by fetch: FetchID) -> [FetchID] {
        guard queues[key]?.holder == fetch else { return [] }
        queues[key]?.trial = trial
        return queues[key]?.waiters.map(\.fetch) ?? []
    }

    /// Returns what the holder of a lease has sent, if the waiting fetch may try that as well.
    /// - Parameter isOwn: whether the fetch has the credential itself.
    func trial(in key: Key, for fetch: FetchID, isOwn: Bool) -> Trial? {
        guard let queue = queues[key], let trial = queue.trial,
            let waiter = queue.waiters.first(where: { $0.fetch == fetch }), !waiter.cannotTry
        else { return nil }
        let isShared =
            trial.login.credential.persistence != .none
            || waiter.client.isOfSameProgram(as: queue.client)
        return isShared || isOwn ? trial : nil
    }

    /// Records that a waiting fetch cannot use what the holder of the lease has sent.
    mutating func recordUselessTrial(in key: Key, for fetch: FetchID) {
        guard let index = queues[key]?.waiters.firstIndex(where: { $0.fetch == fetch }) else { return }
        queues[key]?.waiters[index].cannotTry = true
    }

    /// Returns when a waiting fetch may send a credential although others have no verdict on it; `nil` if there is no
    /// such time.
    func nextTry(of fetch: FetchID, at place: QueuePosition) -> Duration? {
        switch place {
        case .attempt: inFlightAttempts.nextTry(of: fetch)
        case .queue(let key):
            trial(in: key, for: fetch, isOwn: key.purpose == .own).flatMap { inFlightAttempts.nextTry(of: $0.login) }
        }
    }

    /// Wakes the fetches that wait for a credential for `space`, because the session cache received one from a fetch
    /// outside their queue.
    mutating func credentialArrived(for space: ProtectionSpace, owner: Partition?) {
        let awaiting = queues.filter { key, queue in
            !queue.waiters.isEmpty && key.space == space && key.purpose == .find && key.usesStorage
                && (owner == nil || key.client == owner)
        }
        for (key, queue) in awaiting {
            queues[key]?.waiters = []
            for waiter in queue.waiters { wake(waiter, .retryLookup) }
        }
    }

    mutating func takeWakes() -> [Wake] {
        defer { wakes = [] }
        return wakes
    }

    private mutating func wake(_ waiter: Waiter, _ news: QueueUpdate) {
        wakes.append(Wake(fetch: waiter.fetch, news: news, declined: waiter.declined))
    }
}

extension AuthenticationQueues.SharedDecision {
    /// Whether the result may also serve waiting fetches of programs that were not asked (SEMANTICS rule 17).
    fileprivate var isForAll: Bool {
        switch self {
        case .login(let credential, _): credential.persistence != .none  // guard: answer-for-this-time
        case .trust(let decision): decision.persistence != .none  // guard: exception-for-this-time
        case .certificate(let certificate, _): certificate.persistence != .none
        }
    }
}
