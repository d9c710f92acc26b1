internal import JSONText
public import Logging
public import WatchwordCore
internal import WatchwordProtocol

/// The broker: connects a user's programs with transfers and the keyring. It carries out the decisions of the state
/// machines of WatchwordCore, and never blocks, so that no client delays another.
public actor Broker {
    /// The executor of the event loop, so that a message is handled on the thread that reads it.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let loop: any BrokerLoop
    /// `nil` once it has been called: it contains the first options, whose secrets are not stored longer than necessary.
    private var makeDesks: (@Sendable (Broker) -> Desks)?
    /// Created on first use, because the desks refer to this actor.
    private(set) lazy var desks = createDesks()

    /// - Parameters:
    ///   - keyring: `nil` without a keyring; then only the session cache stores credentials.
    ///   - audit: `nil` without an audit log.
    public init(
        loop: any BrokerLoop, transfers: any TransferPort, keyring: (any KeyringPort)? = nil,
        netrc: (any NetrcPort)? = nil, commands: (any CommandPort)? = nil,
        trust: (any TrustPort)? = nil, consents: (any ConsentPort)? = nil, audit: (any AuditPort)? = nil,
        fronts: (any FrontPort)? = nil, upstreams: (any UpstreamPort)? = nil, clock: any BrokerClock,
        options: BrokerOptions, log: Logger
    ) {
        self.loop = loop
        let ports = BrokerPorts(
            loop: loop, transfers: transfers, keyring: keyring, netrc: netrc, commands: commands, trust: trust,
            consents: consents, audit: audit, fronts: fronts, upstreams: upstreams, clock: clock)
        var table = FetchTable(
            session: options.session, isKeyringEnabled: keyring != nil && options.isKeyringEnabled,
            sharing: options.sharing)
        if let trust { table.setPermanentTrust(trust.trustedKeys()) }
        if let consents { table.restoreConsents(consents.permanentConsents()) }
        let suspended = clock.suspended
        makeDesks = { [table] broker in
            Desks(
                ports, DeskContext(clock, options, own: fronts?.ownPorts, log), table, suspendedBefore: suspended,
                of: broker)
        }
    }

    private func createDesks() -> Desks {
        guard let makeDesks else { preconditionFailure("the desks are created once") }
        self.makeDesks = nil
        return makeDesks(self)
    }

    /// Shuts the broker down: notifies the clients, waits at most `grace` for running fetches, open bodies and keyring
    /// writes, cancels the remaining ones, closes all connections and clears the session cache. New requests are
    /// refused from the start.
    /// - Parameter completion: called at the end.
    public func shutDown(reason: String, grace: Duration, completion: @escaping @Sendable () -> Void) {
        let context = desks.context
        context.isClosing = true
        context.log.notice("shutting down", metadata: ["reason": "\(reason)", "fetches": "\(desks.fetches.all.count)"])
        let params: JSON = ["reason": .string(reason), "graceMs": .integer(grace.wholeMilliseconds)]
        for connection in desks.clients.all where connection.profile.isInitialized {
            connection.notify(.serverClosing, params)
        }
        finish(by: context.now + grace, completion)
    }

    private func finish(by end: Duration, _ completion: @escaping @Sendable () -> Void) {
        let step = Duration.milliseconds(20)
        let isWriting = desks.keyring.isBusy || desks.tokens.isBusy
        let isBusy = !desks.fetches.all.isEmpty || isWriting || desks.bodies.isBusy
        if isBusy, desks.context.now < end {
            _ = desks.context.clock.schedule(after: step) { self.assumeIsolated { $0.finish(by: end, completion) } }
            return
        }
        desks.fetches.cancel(Array(desks.fetches.all))
        desks.programPrompts.shutDown()
        for connection in desks.clients.all { desks.bodies.cancelAll(of: connection) }
        for connection in desks.clients.all { connection.close() }
        desks.session.forgetSession(because: "the broker is stopping")
        completion()
    }

    /// Applies the settings that can change at run time. The deadlines of open questions do not change.
    public func reconfigure(_ change: @Sendable (inout BrokerOptions) -> Void) {
        desks.session.reconfigure(change)
        desks.upstreams.reconfigure()
    }

    /// Forgets all credentials, client certificates and trust exceptions of the session, and the grants that are not
    /// permanent.
    public func forgetSession(because reason: String) { desks.session.forgetSession(because: reason) }

    /// Starts to notify clients of keyring changes by other programs, in the next turn of the loop.
    public nonisolated func watchKeyring() {
        loop.post { self.assumeIsolated { $0.desks.keyring.watch() } }
    }

    /// Opens the fronts of the configuration, in the next turn of the loop.
    public nonisolated func openFronts() {
        loop.post { self.assumeIsolated { $0.desks.fronts.openConfigured() } }
    }

    /// Reports problems with the PAC file or the settings of the desktop, in the next turn of the loop.
    public nonisolated func checkUpstreams() {
        loop.post { self.assumeIsolated { $0.desks.upstreams.check() } }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) {
        guard let connection = desks.clients[id] else { return }
        desks.fetches.change { $0.recordTime(desks.context.clock.sinceEpoch) }
        let events = connection.received(bytes)
        for (index, event) in events.enumerated() {
            connection.backlog.isLastEvent = index == events.count - 1
            handle(event, from: connection)
        }
        // Handling the events may have closed the connection.
        if desks.clients[id] != nil { desks.clients.recordIncompleteMessage(of: connection) }
    }
}

extension Broker: ConnectionService {
    public nonisolated func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        // As with the bytes below, the closure runs on this thread; so does everything that uses the link.
        nonisolated(unsafe) let link = link
        return assumeIsolated { $0.desks.clients.open(link, peer: peer) }
    }

    public nonisolated func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID) {
        // `nonisolated(unsafe)`: the closure runs on this thread, and returns while the bytes are valid.
        nonisolated(unsafe) let lent = bytes
        assumeIsolated { $0.receive(lent, from: connection) }
    }

    public nonisolated func leftUnread(_ count: Int, _ connection: ConnectionID) {
        assumeIsolated { $0.desks.clients.recordUnread(count, of: connection) }
    }

    public nonisolated func inputEnded(_ connection: ConnectionID) {
        assumeIsolated { broker in
            guard let connection = broker.desks.clients[connection] else { return }
            connection.hasInputEnded = true
            broker.desks.questions.leave(connection, because: .disconnected)
            broker.desks.programPrompts.leave(connection, because: .disconnected)
            connection.closeIfDone()
        }
    }

    public nonisolated func connectionClosed(_ connection: ConnectionID) {
        assumeIsolated { broker in
            let desks = broker.desks
            guard let connection = desks.clients.remove(connection) else { return }
            desks.fronts.closeFronts(of: connection)
            desks.fronts.closed(connection)
            desks.fetches.cancel(connection.fetches.compactMap { desks.fetches[$0] })
            desks.bodies.forget(connection)
            desks.programPrompts.forget(connection)
            desks.questions.forget(connection)
            desks.fetches.change { $0.forgetClient(connection.id.tag, connection.peer.subject) }
            desks.tokens.endSession(of: connection.id.tag)
        }
    }
}

extension Broker: FrontService {
    public nonisolated func frontConnectionOpened(
        _ link: any FrontLink, _ peer: FrontPeer, at front: FrontID
    ) -> ConnectionID? {
        nonisolated(unsafe) let link = link
        return assumeIsolated { $0.desks.fronts.opened(link, peer, at: front) }
    }

    public nonisolated func requested(_ request: FrontRequest, _ body: FrontBody, on connection: ConnectionID) {
        assumeIsolated { broker in
            guard let connection = broker.desks.clients[connection] else { return }
            broker.desks.fronts.requested(request, body, on: connection)
        }
    }

    public nonisolated func requestBroken(_ refusal: FrontRefusal, on connection: ConnectionID) {
        assumeIsolated { broker in
            guard let connection = broker.desks.clients[connection] else { return }
            broker.desks.fronts.broken(refusal, on: connection)
        }
    }

    public nonisolated func drained(_ connection: ConnectionID) {
        assumeIsolated { $0.desks.fronts.drained(connection) }
    }

    public nonisolated func frontConnectionClosed(_ connection: ConnectionID) { connectionClosed(connection) }
}
