import AuditTrail
import Broker
import BrokerSocket
import Configuration
import Dispatch
import EventLoop
import Glibc
import Keyring
import Logging
import Transfers
import WatchwordCore
import WatchwordProtocol

/// Everything that runs, on the loop of the thread that makes it: the only place that names every adapter.
final class RunningService {
    /// How long fetches may go on after a signal to stop.
    private static let grace = Duration.seconds(3)
    /// How long the last lines of the audit log may take.
    private static let lastWords = Duration.seconds(1)

    private let loop: EventLoop
    private let engine: TransferEngine
    private let keyring: SecretServiceKeyring
    private let netrc: NetrcFile
    private let broker: Broker
    private let trust: TrustFile?
    private let grants: GrantFile?
    private let audit: AuditLog?
    private var servers: [BrokerServer] = []
    private let manager: ServiceManager
    private let source: ConfigurationSource
    private let started: Settings
    /// Given at the start: wins over the configuration, also when that is read anew.
    private let challengeDeadline: Duration?
    private let log: Logger
    private var isStopping = false
    /// In order: the configuration that is read last counts.
    private let reading = DispatchQueue(label: "watchword.configuration")
    /// Why the service ends by itself, if it does.
    private var failure: SocketFailure?

    /// Listens; `run` serves.
    init(
        _ options: Daemon, _ source: ConfigurationSource, _ settings: Settings, manager: ServiceManager, log: Logger
    ) throws {
        (self.manager, self.source, started, self.log) = (manager, source, settings, log)
        do {
            let location = SocketLocation(explicit: options.socket, environment: Self.environment, uid: getuid())
            let socket =
                try manager.sockets.map { try ListeningSocket(inherited: $0.main) } ?? ListeningSocket(at: location)
            loop = try EventLoop()
            engine = try TransferEngine(on: loop, caFile: options.caFile, tokenModule: settings.tokenModule)
            keyring = SecretServiceKeyring(callLimit: settings.keyringCall)
            netrc = NetrcFile(log: log)
            netrc.check(settings.netrcFile)
            challengeDeadline = options.challengeDeadlineMs.map { Duration.milliseconds($0) }
            trust = TrustFile(environment: Self.environment, log: log)
            grants = GrantFile(environment: Self.environment, log: log)
            audit = AuditLog(settings, log: log)
            var brokerOptions = BrokerOptions(version: WatchwordVersion.current, document: ProtocolDocument.load())
            brokerOptions.apply(settings, challengeDeadline: challengeDeadline)
            brokerOptions.filtersSystemCalls = settings.filtersSystemCalls
            broker = Broker(
                loop: loop, transfers: engine, keyring: keyring, netrc: netrc, trust: trust, grants: grants,
                audit: audit, clock: LoopClock(of: loop), options: brokerOptions, log: log)
            broker.watchKeyring()
            try listen(on: socket, restricted: location.restricted)
            _ = try ServiceSignals(on: loop) { [unowned self] in serve($0) }
        } catch let failure as SocketFailure {
            throw StartFailure(failure)
        } catch let failure as TransferFailure {
            throw StartFailure(failure)
        } catch let failure as LoopFailure {
            throw StartFailure("The broker cannot start: \(failure).")
        }
        manager.watch(loop, log: log)
        log.notice("listening", metadata: ["version": "\(WatchwordVersion.current)", "pid": "\(getpid())"])
    }

    private static let environment: @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } }

    private func listen(on socket: consuming ListeningSocket, restricted: SocketLocation) throws {
        let census = ConnectionCensus()
        try add(socket, .main, census)
        if let sockets = manager.sockets {
            // A service manager makes the sockets that there are to be.
            if let other = sockets.restricted { try add(ListeningSocket(inherited: other), .restricted, census) }
        } else if restricted.isShortEnough {
            try add(ListeningSocket(at: restricted), .restricted, census)
        } else {
            log.warning("there is no restricted socket: its path is too long", metadata: ["path": "\(restricted.path)"])
        }
    }

    private func add(_ socket: consuming ListeningSocket, _ entrance: Entrance, _ census: ConnectionCensus) throws {
        servers.append(
            try BrokerServer(
                on: loop, socket: socket, entrance: entrance, service: broker, policy: PeerPolicy(uid: getuid()),
                census: census, log: log
            ) { [unowned self] failure in
                self.failure = self.failure ?? failure
                stop()
            })
    }

    /// Serves until the service is told to stop, or cannot go on; then it says why.
    func run() -> SocketFailure? {
        loop.run()
        for file in [trust?.file, grants?.file] { file?.finish(within: .seconds(1)) }
        audit?.shutDown(limit: Self.lastWords)
        engine.shutDown()
        keyring.shutDown()
        log.notice("stopped")
        return failure
    }

    // MARK: Signals

    private func serve(_ request: ServiceSignals.Request) {
        switch request {
        case .reload: reload()
        case .forget: broker.assumeIsolated { $0.forgetSession(because: "SIGUSR1") }
        case .stop: stop()
        }
    }

    /// In the order in which nothing is lost: no new clients, then no new requests, then no transfers.
    private func stop() {
        guard !isStopping else { return }
        isStopping = true
        manager.say(.stopping(status: "Ending what is still fetched."))
        for server in servers { server.stop() }
        let loop = loop
        broker.assumeIsolated { broker in
            broker.shutDown(reason: "The broker was told to stop.", grace: Self.grace) { loop.stop() }
        }
    }

    /// Takes over the configuration as it is now. It is read on another thread: a file system may hang.
    private func reload() {
        manager.say(.reloading)
        let this = LoopBound(self, to: loop)
        reading.async { [source, loop] in
            let loaded = Result { () throws(StartFailure) in try source.load() }
            loop.post {
                let status = this.value.takeOver(loaded).status
                if !this.value.isStopping { this.value.manager.say(.ready(status: status)) }
            }
        }
    }

    /// One with a mistake changes nothing.
    private func takeOver(_ loaded: Result<Settings, StartFailure>) -> Reloading {
        do throws(StartFailure) {
            let settings = try loaded.get()
            let challengeDeadline = challengeDeadline
            audit?.configure(isEnabled: settings.auditEnabled, limits: AuditLimits(settings))
            keyring.setCallLimit(settings.keyringCall)
            netrc.check(settings.netrcFile)
            broker.assumeIsolated { $0.reconfigure { $0.apply(settings, challengeDeadline: challengeDeadline) } }
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
}
