internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Routes.
final class Router {
    let way: WayBack<Router>
    let transfers: any TransferPort
    /// `nil` where there is none: the session cache is all there is then.
    private(set) var bodies: BodyDesk!
    private(set) var progress: ProgressReporter!
    private(set) var questions: QuestionDesk!
    private(set) var keyring: KeyringDesk!
    private(set) var credentials: CredentialDesk!
    let trust: (any TrustPort)?
    let grants: (any GrantPort)?
    let context: DeskContext
    let audit: AuditRecorder
    let loop: any BrokerLoop
    private let hasNetrc: Bool

    /// What is decided; everything else here is about acting on it.
    var table: FetchTable
    let clients: ClientRegistry
    var fetches: [FetchID: RunningFetch] = [:]
    var pendingOrders: [CausedOrder] = []
    var isPerforming = false
    var isTicking = false
    var suspendedBefore: Duration
    var isClosing = false

    init(
        _ ports: BrokerPorts, _ table: FetchTable, options: BrokerOptions, log: Logger, suspendedBefore: Duration,
        way: WayBack<Router>
    ) {
        self.way = way
        (loop, transfers, hasNetrc) = (ports.loop, ports.transfers, ports.netrc != nil)
        (trust, grants) = (ports.trust, ports.grants)
        context = DeskContext(ports.clock, options, log)
        audit = AuditRecorder(ports.audit, ports.clock)
        self.table = table
        self.suspendedBefore = suspendedBefore
        let broker = way.broker
        clients = ClientRegistry(context, audit, WayBack(broker: broker, clock: ports.clock) { $0.router.clients })
        bodies = BodyDesk(
            transfers, clients, self, WayBack(broker: broker, clock: ports.clock) { $0.router.bodies })
        progress = ProgressReporter(
            transfers, clients, bodies, self, WayBack(broker: broker, clock: ports.clock) { $0.router.progress })
        questions = QuestionDesk(
            context, audit, clients, bodies, self, WayBack(broker: broker, clock: ports.clock) { $0.router.questions })
        keyring = KeyringDesk(
            ports, context, clients, self, WayBack(broker: broker, clock: ports.clock) { $0.router.keyring })
        credentials = CredentialDesk(
            ports, context, audit, keyring, self, WayBack(broker: broker, clock: ports.clock) { $0.router.credentials })
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

    subscript(id: FetchID) -> RunningFetch? { fetches[id] }

    /// Something has happened to a fetch, or to all: what follows from it is done.
    /// - Parameter cause: of what comes up in no fetch.
    func report(_ cause: Cause = .broker, _ event: (inout FetchTable, FetchEnvironment) -> [FetchTable.Order]) {
        perform(event(&table, environment), cause)
    }

    /// Changes what the fetches share.
    @discardableResult
    func change<Result>(_ change: (inout FetchTable) -> Result) -> Result { change(&table) }

    var environment: FetchEnvironment {
        FetchEnvironment(
            now: clock.now, sinceEpoch: clock.sinceEpoch, proxy: options.proxy, hosts: options.hosts,
            schemes: options.schemes, usesNetrc: hasNetrc && options.netrcFile != nil,
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
        for connection in clients.all where connection.isInitialized {
            connection.notify(.serverClosing, params)
        }
        finish(by: clock.now + grace, completion)
    }

    private func finish(by end: Duration, _ completion: @escaping @Sendable () -> Void) {
        let step = Duration.milliseconds(20)
        if isBusy, clock.now < end { return eventually(after: step) { $0.finish(by: end, completion) } }
        cancel(Array(fetches.values))
        for connection in clients.all { bodies.cancelAll(of: connection) }
        for connection in clients.all { connection.close() }
        forgetSession(because: "the broker ends")
        completion()
    }

    private var isBusy: Bool {
        !fetches.isEmpty || keyring.isBusy || bodies.isBusy
    }

    // MARK: Connections

    func open(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        clients.open(link, peer: peer, left: questions.parked.program(of: peer.pid))
    }

    func receive(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) {
        guard let connection = clients[id] else { return }
        table.noteTime(clock.sinceEpoch)
        let events = connection.received(bytes)
        for (index, event) in events.enumerated() {
            connection.isLastEvent = index == events.count - 1
            handle(event, from: connection)
        }
        // It may be gone by now.
        if clients[id] != nil { clients.noteUnfinishedMessage(of: connection) }
    }

    func endInput(of id: ConnectionID) {
        guard let connection = clients[id] else { return }
        connection.hasInputEnded = true
        questions.leave(connection, because: .disconnected)
        connection.closeIfDone()
    }

    func forget(_ id: ConnectionID) {
        guard let connection = clients.remove(id) else { return }
        cancelFetches(of: connection)
        questions.forget(connection)
        table.forgetClient(id.tag, connection.peer.subject)
    }
}
