internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Routes.
final class Router {
    let way: WayBack<Router>
    let transfers: any TransferPort
    /// `nil` where there is none: the session cache is all there is then.
    let keyring: (any KeyringPort)?
    let netrc: (any NetrcPort)?
    let trust: (any TrustPort)?
    let grants: (any GrantPort)?
    let context: DeskContext
    let audit: AuditRecorder
    let loop: any BrokerLoop

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
    var isWatchingSenders = false
    var isPerforming = false
    var isTicking = false
    var suspendedBefore: Duration
    var isClosing = false
    private var lastConnection = 0

    init(
        _ ports: BrokerPorts, _ table: FetchTable, options: BrokerOptions, log: Logger, suspendedBefore: Duration,
        way: WayBack<Router>
    ) {
        self.way = way
        (loop, transfers, keyring, netrc) = (ports.loop, ports.transfers, ports.keyring, ports.netrc)
        (trust, grants) = (ports.trust, ports.grants)
        context = DeskContext(ports.clock, options, log)
        audit = AuditRecorder(ports.audit, ports.clock)
        self.table = table
        self.suspendedBefore = suspendedBefore
        everybody = Holdings(of: .everybody, options.holdingLimits)
    }

    func after(_ duration: Duration, _ action: @escaping @Sendable (Router) -> Void) -> DeadlineTimer {
        way.after(duration, action)
    }

    func eventually(after duration: Duration, _ action: @escaping @Sendable (Router) -> Void) {
        way.eventually(after: duration, action)
    }

    var clock: any BrokerClock { context.clock }
    var log: Logger { context.log }
    var options: BrokerOptions { context.options }

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
    func shutDown(reason: String, grace: Duration, completion: @escaping @Sendable () -> Void) {
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

    func open(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
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

    func receive(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) {
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

    func endInput(of id: ConnectionID) {
        guard let connection = connections[id] else { return }
        connection.hasInputEnded = true
        settleQuestions(of: connection, because: .disconnected)
        settleConfirmations(of: connection)
        settleConsultations(of: connection)
        connection.closeIfDone()
    }

    func forget(_ id: ConnectionID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        connection.program.connectionCount -= 1
        if connection.program.connectionCount == 0 { programs[connection.peer.pid] = nil }
        audit.forget(connection)
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
