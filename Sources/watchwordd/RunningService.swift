import AuditTrail
import Broker
import BrokerSocket
import Configuration
import Glibc
import Keyring
import Logging
import NIOCore
import NIOPosix
import Transfers
import WatchwordCore
import WatchwordProtocol

/// Everything that runs: the only place that names every adapter.
struct RunningService {
    /// How long fetches may go on after a signal to stop.
    private static let grace = Duration.seconds(3)
    /// How long the last lines of the audit log may take.
    private static let lastWords = Duration.seconds(1)

    private let group: MultiThreadedEventLoopGroup
    private let engine: TransferEngine
    private let keyring: SecretServiceKeyring
    private let netrc: NetrcFile
    private let broker: Broker
    private let audit: AuditLog?
    private let servers: [BrokerServer]
    /// Why the service ends by itself, if it does.
    let end: ServiceEnd
    /// Given at the start: wins over the configuration, also when that is read anew.
    private let challengeDeadline: Duration?
    private let started: Settings
    private let log: Logger

    static func start(
        _ options: Daemon, _ settings: Settings, manager: ServiceManager, log: Logger
    ) async throws -> RunningService {
        do {
            let location = SocketLocation(
                explicit: options.socket, environment: { name in getenv(name).map { String(cString: $0) } },
                uid: getuid())
            let socket =
                try manager.sockets.map { try ListeningSocket(inherited: $0.main) } ?? ListeningSocket(at: location)
            let engine = try TransferEngine(caFile: options.caFile, tokenModule: settings.tokenModule)
            return try await start(
                options, settings, manager: manager, socket: socket, restricted: location.restricted, engine: engine,
                log: log)
        } catch let failure as SocketFailure {
            throw StartFailure(failure)
        } catch let failure as TransferFailure {
            throw StartFailure(failure)
        }
    }

    private static func start(
        _ options: Daemon, _ settings: Settings, manager: ServiceManager, socket: consuming ListeningSocket,
        restricted: SocketLocation, engine: TransferEngine, log: Logger
    ) async throws -> RunningService {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let keyring = SecretServiceKeyring(callLimit: settings.keyringCall)
        let netrc = NetrcFile(log: log)
        netrc.check(settings.netrcFile)
        let challengeDeadline = options.challengeDeadlineMs.map { Duration.milliseconds($0) }
        var brokerOptions = BrokerOptions(version: WatchwordVersion.current, document: ProtocolDocument.load())
        brokerOptions.apply(settings, challengeDeadline: challengeDeadline)
        brokerOptions.filtersSystemCalls = settings.filtersSystemCalls
        let trust = TrustFile(environment: { name in getenv(name).map { String(cString: $0) } }, log: log)
        let grants = GrantFile(environment: { name in getenv(name).map { String(cString: $0) } }, log: log)
        let audit = AuditLog(settings, log: log)
        let broker = Broker(
            loop: EventLoopAdapter(loop), transfers: engine, keyring: keyring, netrc: netrc, trust: trust,
            grants: grants, audit: audit, options: brokerOptions, log: log)
        broker.watchKeyring()
        let policy = PeerPolicy(uid: getuid())
        let census = ConnectionCensus()
        let end = ServiceEnd()
        var servers = [
            try await BrokerServer.start(
                on: loop, socket: socket, service: broker, policy: policy, census: census, log: log, onFailure: end.fail
            )
        ]
        if let socket = try restrictedSocket(of: manager, at: restricted, log: log) {
            servers.append(
                try await BrokerServer.start(
                    on: loop, socket: socket, entrance: .restricted, service: broker, policy: policy,
                    census: census, log: log, onFailure: end.fail))
        }
        manager.watch(loop, log: log)
        log.notice("listening", metadata: ["version": "\(WatchwordVersion.current)", "pid": "\(getpid())"])
        return RunningService(
            group: group, engine: engine, keyring: keyring, netrc: netrc, broker: broker, audit: audit,
            servers: servers, end: end, challengeDeadline: challengeDeadline, started: settings, log: log)
    }

    /// A service manager makes the sockets that there are to be.
    private static func restrictedSocket(
        of manager: ServiceManager, at location: SocketLocation, log: Logger
    ) throws -> ListeningSocket? {
        if let sockets = manager.sockets { return try sockets.restricted.map { try ListeningSocket(inherited: $0) } }
        if location.isShortEnough { return try ListeningSocket(at: location) }
        log.warning("there is no restricted socket: its path is too long", metadata: ["path": "\(location.path)"])
        return nil
    }

    /// Takes over the configuration as it is now. One with a mistake changes nothing.
    func reload(from source: ConfigurationSource) async -> Reloading {
        do {
            let settings = try source.load()
            let challengeDeadline = challengeDeadline
            audit?.configure(isEnabled: settings.auditEnabled, limits: AuditLimits(settings))
            keyring.setCallLimit(settings.keyringCall)
            netrc.check(settings.netrcFile)
            await broker.reconfigure { $0.apply(settings, challengeDeadline: challengeDeadline) }
            log.notice("configuration read anew", metadata: ["file": "\(source.path ?? "none")"])
            let options = settings.optionsThatNeedRestart(since: started)
            if options.isEmpty { return .applied }
            log.warning(
                "options take effect when the broker is started again",
                metadata: ["options": "\(options.joined(separator: ", "))"])
            return .needsRestart(options)
        } catch {
            log.error("the configuration is left as it was", metadata: ["reason": "\(error.text)"])
            return .refused
        }
    }

    func forgetSession() async { await broker.forgetSession(because: "SIGUSR1") }

    /// In the order in which nothing is lost: no new clients, then no new requests, then no transfers.
    func stop() async {
        for server in servers { await server.stop() }
        await broker.shutDown(reason: "The broker was told to stop.", grace: Self.grace)
        engine.shutDown()
        keyring.shutDown()
        audit?.shutDown(limit: Self.lastWords)
        try? await group.shutdownGracefully()
        log.notice("stopped")
    }
}
