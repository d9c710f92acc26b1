public import Logging
public import WatchwordCore
internal import WatchwordProtocol

/// The broker: a user's programs on one side, transfers and the keyring on the other. It acts on what the machines of the core
/// decide, and never waits for one client on behalf of another.
public actor Broker {
    /// Socket events arrive on this executor, so that a message is handled where it was read, without a change of thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let loop: any BrokerLoop
    private let makeRouter: @Sendable (Broker) -> Router
    /// Made by the first who comes: it knows its way back to this actor.
    private(set) lazy var router = makeRouter(self)

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
        makeRouter = { [table] broker in
            Router(
                ports, table, options: options, log: log, suspendedBefore: suspended,
                way: WayBack(broker: broker, clock: clock) { $0.router })
        }
    }

    /// Ends the service: tells the clients, lets running fetches, bodies on their way, and what is being written into the
    /// keyring, finish for at most `grace`, then cancels what is left, closes every connection and forgets the session. New
    /// requests are refused from the first moment on.
    /// - Parameter completion: called when nothing is left to be done.
    public func shutDown(reason: String, grace: Duration, completion: @escaping @Sendable () -> Void) {
        router.shutDown(reason: reason, grace: grace, completion: completion)
    }

    /// Takes over new settings, as far as they can change. Questions that are open keep their deadlines.
    public func reconfigure(_ change: @Sendable (inout BrokerOptions) -> Void) { router.reconfigure(change) }

    /// Forgets all credentials of the session.
    public func forgetSession(because reason: String) { router.forgetSession(because: reason) }

    /// From the next turn on, also what other programs change in the keyring is told.
    public nonisolated func watchKeyring() {
        loop.post { self.assumeIsolated { $0.router.keyring.watch() } }
    }
}

extension Broker: ConnectionService {
    public nonisolated func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        assumeIsolated { $0.router.open(link, peer: peer) }
    }

    public nonisolated func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID) {
        // `nonisolated(unsafe)`: the call stays on this thread, and is over before the bytes are.
        nonisolated(unsafe) let lent = bytes
        assumeIsolated { $0.router.receive(lent, from: connection) }
    }

    public nonisolated func leftUnread(_ count: Int, _ connection: ConnectionID) {
        assumeIsolated { $0.router.clients.noteUnread(count, of: connection) }
    }

    public nonisolated func inputEnded(_ connection: ConnectionID) {
        assumeIsolated { $0.router.endInput(of: connection) }
    }

    public nonisolated func connectionClosed(_ connection: ConnectionID) {
        assumeIsolated { $0.router.forget(connection) }
    }
}
