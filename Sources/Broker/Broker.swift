internal import JSONText
public import Logging
public import WatchwordCore
internal import WatchwordProtocol

/// The broker: a user's programs on one side, transfers and the keyring on the other. It acts on what the machines of the core
/// decide, and never waits for one client on behalf of another.
public actor Broker {
    /// Socket events arrive on this executor, so that a message is handled where it was read, without a change of thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let loop: any BrokerLoop
    private let makeDesks: @Sendable (Broker) -> Desks
    /// Made by the first who comes: they know their way back to this actor.
    private(set) lazy var desks = makeDesks(self)

    /// - Parameters:
    ///   - keyring: `nil` where there is none: the session cache is all there is then.
    ///   - audit: `nil` where no audit log is kept.
    public init(
        loop: any BrokerLoop, transfers: any TransferPort, keyring: (any KeyringPort)? = nil,
        netrc: (any NetrcPort)? = nil,
        trust: (any TrustPort)? = nil, grants: (any GrantPort)? = nil, audit: (any AuditPort)? = nil,
        clock: any BrokerClock,
        options: BrokerOptions, log: Logger
    ) {
        self.loop = loop
        let ports = BrokerPorts(
            loop: loop, transfers: transfers, keyring: keyring, netrc: netrc, trust: trust, grants: grants,
            audit: audit, clock: clock)
        var table = FetchTable(
            session: options.session, isKeyringEnabled: keyring != nil && options.isKeyringEnabled,
            sharing: options.sharing)
        if let trust { table.setPermanentTrust(trust.trustedKeys()) }
        if let grants { table.restoreGrants(grants.standingGrants()) }
        let suspended = clock.suspended
        makeDesks = { [table] broker in
            Desks(ports, DeskContext(clock, options, log), table, suspendedBefore: suspended, of: broker)
        }
    }

    /// Ends the service: tells the clients, lets running fetches, bodies on their way, and what is being written into the
    /// keyring, finish for at most `grace`, then cancels what is left, closes every connection and forgets the session. New
    /// requests are refused from the first moment on.
    /// - Parameter completion: called when nothing is left to be done.
    public func shutDown(reason: String, grace: Duration, completion: @escaping @Sendable () -> Void) {
        let context = desks.context
        context.isClosing = true
        context.log.notice("closing", metadata: ["reason": "\(reason)", "fetches": "\(desks.fetches.all.count)"])
        let params: JSON = ["reason": .string(reason), "graceMs": .integer(grace.wholeMilliseconds)]
        for connection in desks.clients.all where connection.profile.isInitialized {
            connection.notify(.serverClosing, params)
        }
        finish(by: context.now + grace, completion)
    }

    private func finish(by end: Duration, _ completion: @escaping @Sendable () -> Void) {
        let step = Duration.milliseconds(20)
        let isBusy = !desks.fetches.all.isEmpty || desks.keyring.isBusy || desks.bodies.isBusy
        if isBusy, desks.context.now < end {
            _ = desks.context.clock.schedule(after: step) { self.assumeIsolated { $0.finish(by: end, completion) } }
            return
        }
        desks.fetches.cancel(Array(desks.fetches.all))
        for connection in desks.clients.all { desks.bodies.cancelAll(of: connection) }
        for connection in desks.clients.all { connection.close() }
        desks.session.forgetSession(because: "the broker ends")
        completion()
    }

    /// Takes over new settings, as far as they can change. Questions that are open keep their deadlines.
    public func reconfigure(_ change: @Sendable (inout BrokerOptions) -> Void) { desks.session.reconfigure(change) }

    /// Forgets all credentials of the session.
    public func forgetSession(because reason: String) { desks.session.forgetSession(because: reason) }

    /// From the next turn on, also what other programs change in the keyring is told.
    public nonisolated func watchKeyring() {
        loop.post { self.assumeIsolated { $0.desks.keyring.watch() } }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) {
        guard let connection = desks.clients[id] else { return }
        desks.fetches.change { $0.noteTime(desks.context.clock.sinceEpoch) }
        let events = connection.received(bytes)
        for (index, event) in events.enumerated() {
            connection.backlog.isLastEvent = index == events.count - 1
            handle(event, from: connection)
        }
        // It may be gone by now.
        if desks.clients[id] != nil { desks.clients.noteUnfinishedMessage(of: connection) }
    }
}

extension Broker: ConnectionService {
    public nonisolated func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        assumeIsolated { broker in
            broker.desks.clients.open(link, peer: peer, left: broker.desks.questions.parked.program(of: peer.pid))
        }
    }

    public nonisolated func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID) {
        // `nonisolated(unsafe)`: the call stays on this thread, and is over before the bytes are.
        nonisolated(unsafe) let lent = bytes
        assumeIsolated { $0.receive(lent, from: connection) }
    }

    public nonisolated func leftUnread(_ count: Int, _ connection: ConnectionID) {
        assumeIsolated { $0.desks.clients.noteUnread(count, of: connection) }
    }

    public nonisolated func inputEnded(_ connection: ConnectionID) {
        assumeIsolated { broker in
            guard let connection = broker.desks.clients[connection] else { return }
            connection.hasInputEnded = true
            broker.desks.questions.leave(connection, because: .disconnected)
            connection.closeIfDone()
        }
    }

    public nonisolated func connectionClosed(_ connection: ConnectionID) {
        assumeIsolated { broker in
            let desks = broker.desks
            guard let connection = desks.clients.remove(connection) else { return }
            desks.fetches.cancel(connection.fetches.compactMap { desks.fetches[$0] })
            desks.bodies.forget(connection)
            desks.questions.forget(connection)
            desks.fetches.change { $0.forgetClient(connection.id.tag, connection.peer.subject) }
        }
    }
}
