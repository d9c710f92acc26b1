internal import JSONText
public import Logging
public import WatchwordCore
internal import WatchwordProtocol

/// The broker: its connections, its running fetches, its questions. It acts on what the machines of the core decide, and
/// never waits for one client on behalf of another.
public actor Broker {
    /// Socket events arrive on this executor, so that a message is handled where it was read, without a change of thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let loop: any BrokerLoop

    let transfers: any TransferPort
    /// `nil` where there is none: the session cache is all there is then.
    let keyring: (any KeyringPort)?
    let netrc: (any NetrcPort)?
    let trust: (any TrustPort)?
    let grants: (any GrantPort)?
    /// `nil` where no account is kept.
    let audit: (any AuditPort)?
    let clock: any BrokerClock
    var options: BrokerOptions
    let log: Logger

    /// What is decided; everything else here is about acting on it.
    var table: FetchTable
    var passphraseLock = PassphraseLock()
    var prompts = PromptRules()
    var connections: [ConnectionID: ClientConnection] = [:]
    /// By process, for as long as it has connections.
    var programs: [Int32: ClientProgram] = [:]
    private let everybody: Holdings
    var fetches: [FetchID: RunningFetch] = [:]
    var questions: [String: OpenQuestion] = [:]
    /// Questions about the use of what is kept.
    var confirmations: [String: OpenConfirmation] = [:]
    /// By resume token.
    var parked: [String: ParkedFetch] = [:]
    /// Fetches in steps, by attach token.
    var tokens: [String: StepReference] = [:]
    /// Look-ups that the keyring has not answered.
    var lookUps: [Int: FetchID] = [:]
    var lastLookUp = 0
    /// Changes of the keyring that nobody waits for but the end of the service.
    var openKeyringChanges = 0
    var lastAgent = 0
    var pendingOrders: [CausedOrder] = []
    /// Who wants to hear what happens.
    var eventListeners: Set<ConnectionID> = []
    var repeatedEvents = RepeatedEvents()
    var isWatchingSenders = false
    var isPerforming = false
    var isTicking = false
    var suspendedBefore = Duration.zero
    var counters = BrokerCounters()
    var isClosing = false
    private var lastConnection = 0

    public init(
        loop: any BrokerLoop, transfers: any TransferPort, keyring: (any KeyringPort)? = nil,
        netrc: (any NetrcPort)? = nil,
        trust: (any TrustPort)? = nil, grants: (any GrantPort)? = nil, audit: (any AuditPort)? = nil,
        clock: any BrokerClock,
        options: BrokerOptions, log: Logger
    ) {
        self.loop = loop
        self.transfers = transfers
        self.keyring = keyring
        self.netrc = netrc
        self.trust = trust
        self.grants = grants
        self.audit = audit
        self.clock = clock
        self.options = options
        self.log = log
        everybody = Holdings(of: .everybody, options.holdingLimits)
        table = FetchTable(
            session: options.session, isKeyringEnabled: keyring != nil && options.isKeyringEnabled,
            sharing: options.sharing)
        suspendedBefore = clock.suspended
        if let trust { table.setPermanentTrust(trust.trustedKeys()) }
        if let grants { table.restoreGrants(grants.standingGrants()) }
    }

    var environment: FetchEnvironment {
        FetchEnvironment(
            now: clock.now, sinceEpoch: clock.sinceEpoch, proxy: options.proxy, hosts: options.hosts,
            schemes: options.schemes, usesNetrc: netrc != nil && options.netrcFile != nil,
            makeClientNonce: { RandomText.make128Bits() })
    }

    /// Ends the service: tells the clients, lets running fetches, bodies on their way, and what is being written into the
    /// keyring, finish for at most `grace`, then cancels what is left, closes every connection and forgets the session. New
    /// requests are refused from the first moment on.
    /// - Parameter completion: called when nothing is left to be done.
    public func shutDown(reason: String, grace: Duration, completion: @escaping @Sendable () -> Void) {
        isClosing = true
        log.notice("closing", metadata: ["reason": "\(reason)", "fetches": "\(fetches.count)"])
        let params: JSON = ["reason": .string(reason), "graceMs": .integer(grace.wholeMilliseconds)]
        for connection in connections.values where connection.isInitialized {
            connection.notify(.serverClosing, params)
        }
        finish(by: clock.now + grace, completion)
    }

    private func finish(by end: Duration, _ completion: @escaping @Sendable () -> Void) {
        let step = Duration.milliseconds(20)
        if isBusy, clock.now < end { return eventually(after: step) { $0.finish(by: end, completion) } }
        cancel(Array(fetches.values))
        for connection in connections.values { cancelBodies(of: connection) }
        for connection in connections.values { connection.close() }
        forgetSession(because: "the broker ends")
        completion()
    }

    private var isBusy: Bool {
        !fetches.isEmpty || openKeyringChanges > 0 || connections.values.contains { $0.bodies.count > 0 }
    }

    // MARK: Connections

    private func open(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        lastConnection += 1
        let id = ConnectionID(value: lastConnection)
        let left = { self.parked.values.first { $0.peer.pid == peer.pid }?.program }
        let tag = ProgramTag(value: lastConnection)
        let program = programs[peer.pid] ?? left() ?? ClientProgram(tag, options.holdingLimits, within: everybody)
        programs[peer.pid] = program
        program.connectionCount += 1
        connections[id] = ClientConnection(
            id: id, peer: peer, link: link, program: program, options.holdingLimits)
        log.debug("connection opened", metadata: ["connection": "\(id.value)", "pid": "\(peer.pid)"])
        return id
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) {
        guard let connection = connections[id] else { return }
        table.noteTime(clock.sinceEpoch)
        let events = connection.received(bytes)
        for (index, event) in events.enumerated() {
            connection.isLastEvent = index == events.count - 1
            handle(event, from: connection)
        }
        // It may be gone by now.
        if connections[id] != nil { noteUnfinishedMessage(of: connection) }
    }

    private func endInput(of id: ConnectionID) {
        guard let connection = connections[id] else { return }
        connection.hasInputEnded = true
        settleQuestions(of: connection, because: .disconnected)
        settleConfirmations(of: connection)
        settleConsultations(of: connection)
        connection.closeIfDone()
    }

    private func forget(_ id: ConnectionID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        connection.program.connectionCount -= 1
        if connection.program.connectionCount == 0 { programs[connection.peer.pid] = nil }
        counters.ignoredReplies += connection.ignoredReplies
        eventListeners.remove(id)
        log.debug(
            "connection closed", metadata: ["connection": "\(id.value)", "fetches": "\(connection.fetches.count)"])
        cancelFetches(of: connection)
        settleQuestions(of: connection, because: .disconnected) { question in
            if case .agent = question.place { true } else { false }
        }
        settleConfirmations(of: connection)
        table.forgetClient(id.tag, connection.peer.subject)
    }
}

extension Broker: ConnectionService {
    public nonisolated func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        assumeIsolated { $0.open(link, peer: peer) }
    }

    public nonisolated func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID) {
        // `nonisolated(unsafe)`: the call stays on this thread, and is over before the bytes are.
        nonisolated(unsafe) let lent = bytes
        assumeIsolated { $0.receive(lent, from: connection) }
    }

    public nonisolated func leftUnread(_ count: Int, _ connection: ConnectionID) {
        assumeIsolated { $0.noteUnread(count, of: connection) }
    }

    public nonisolated func inputEnded(_ connection: ConnectionID) {
        assumeIsolated { $0.endInput(of: connection) }
    }

    public nonisolated func connectionClosed(_ connection: ConnectionID) {
        assumeIsolated { $0.forget(connection) }
    }
}
