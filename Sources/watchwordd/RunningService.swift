import AuditTrail
import Broker
import BrokerSocket
import CWipingHeap
import Configuration
import Dispatch
import EventLoop
import Glibc
import Keyring
import Logging
import Transfers
import WatchwordCore
import WatchwordProtocol

/// The running service, with its event loop on the thread that creates it. Has more properties than other types,
/// because it is the only type that refers to all adapters.
final class RunningService {
    /// The time limit for running fetches when the service stops.
    private static let grace = Duration.seconds(3)
    /// The time limit for writing the last audit records when the service stops.
    private static let auditFlushTimeout = Duration.seconds(1)

    private let loop: EventLoop
    private let engine: TransferEngine
    private let keyring: SecretServiceKeyring
    private let netrc: NetrcFile
    private let commands: CommandRunner
    private let upstreams: UpstreamRunner
    private let broker: Broker
    private let trust: TrustFile?
    private let consents: ConsentFile?
    private let audit: AuditLog?
    private let fronts: FrontServer
    private var servers: [BrokerServer] = []
    private let manager: ServiceManager
    private let source: ConfigurationSource
    private let started: Settings
    /// The value of the command-line option, which takes precedence over the configuration, also after a reload.
    private let challengeDeadline: Duration?
    private let log: Logger
    private var isStopping = false
    /// The queue on which the configuration is read. It is serial, so that the last reload takes effect.
    private let reading = DispatchQueue(label: "watchword.configuration")
    /// The failure that ends the service, if any.
    private var failure: SocketFailure?

    /// Starts listening; `run` handles requests.
    init(
        _ options: DaemonOptions, _ source: ConfigurationSource, _ settings: Settings, manager: ServiceManager,
        log: Logger
    ) throws {
        (self.manager, self.source, self.log) = (manager, source, log)
        started = settings.withoutSecrets
        do {
            let location = SocketLocation(explicit: options.socket, environment: ProcessEnvironment.text, uid: getuid())
            let socket =
                try manager.sockets.map { try ListeningSocket(inherited: $0.main) } ?? ListeningSocket(at: location)
            loop = try EventLoop()
            engine = try TransferEngine(on: loop, caFile: options.caFile, tokenModule: settings.tokenModule)
            keyring = SecretServiceKeyring(callLimit: settings.keyringCall)
            netrc = NetrcFile(log: log)
            netrc.check(settings.netrcFile)
            commands = CommandRunner(log: log)
            upstreams = UpstreamRunner()
            challengeDeadline = options.challengeDeadlineMs.map { Duration.milliseconds($0) }
            trust = TrustFile(environment: ProcessEnvironment.text, log: log)
            consents = ConsentFile(environment: ProcessEnvironment.text, log: log)
            audit = AuditLog(settings, log: log)
            fronts = FrontServer(on: loop, log: log)
            var brokerOptions = BrokerOptions(version: WatchwordVersion.current)
            brokerOptions.apply(settings, challengeDeadline: challengeDeadline)
            brokerOptions.filtersSystemCalls = settings.filtersSystemCalls
            broker = Broker(
                loop: loop, transfers: engine.port, keyring: keyring, netrc: netrc, commands: commands,
                trust: trust, consents: consents, audit: audit, fronts: fronts.port, upstreams: upstreams,
                clock: LoopClock(of: loop),
                options: brokerOptions, log: log
            )
            broker.watchKeyring()
            fronts.serve(broker)
            if let front = manager.sockets?.front { try fronts.adopt(front) }
            broker.openFronts()
            // Posted after the opening of the fronts.
            let port = fronts.port
            loop.post { port.value.closeUnused() }
            broker.checkUpstreams()
            try listen(on: socket, restricted: location.restricted)
            _ = try ServiceSignals(on: loop) { [unowned self] in serve($0) }
        } catch let failure as SocketFailure {
            throw StartFailure(failure)
        } catch let failure as TransferFailure {
            throw StartFailure(failure)
        } catch let failure as LoopFailure {
            throw StartFailure("cannot start the broker: \(failure)")
        }
        reportProblems(of: settings)
        manager.watch(loop, log: log)
        log.notice("listening", metadata: ["version": "\(WatchwordVersion.current)", "pid": "\(getpid())"])
    }

    /// Reports that the broker is ready, after the fronts of the configuration are opened: they are opened on the loop.
    func reportReady(_ report: @escaping @Sendable () -> Void) {
        let this = LoopBound(self, to: loop)
        loop.post {
            report()
            this.value.manager.say(.ready(status: "Listening."))
        }
    }

    private func listen(on socket: consuming ListeningSocket, restricted: SocketLocation) throws {
        let counter = ConnectionCounter()
        try add(socket, .main, counter)
        if let sockets = manager.sockets {
            // With socket activation, the service manager creates all sockets.
            if let other = sockets.restricted { try add(ListeningSocket(inherited: other), .restricted, counter) }
        } else if restricted.isShortEnough {
            try add(ListeningSocket(at: restricted), .restricted, counter)
        } else {
            log.warning("no restricted socket: its path is too long", metadata: ["path": "\(restricted.path)"])
        }
    }

    private func add(_ socket: consuming ListeningSocket, _ socketKind: SocketKind, _ counter: ConnectionCounter) throws
    {
        servers.append(
            try BrokerServer(
                on: loop, socket: socket, socketKind: socketKind, service: broker, policy: PeerPolicy(uid: getuid()),
                counter: counter, log: log
            ) { [unowned self] failure in
                self.failure = self.failure ?? failure
                stop()
            })
    }

    /// Handles requests until a signal or a failure stops the service. Returns the failure, if any.
    func run() -> SocketFailure? {
        watchword_heap_keep_blocks()
        loop.run()
        fronts.shutDown()
        for file in [trust?.file, consents?.file] { file?.finish(within: 1) }
        audit?.shutDown(limit: Self.auditFlushTimeout)
        commands.shutDown()
        upstreams.shutDown()
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

    /// Stops accepting clients and requests. The loop ends when all running work is done, at the latest after `grace`.
    private func stop() {
        guard !isStopping else { return }
        isStopping = true
        manager.say(.stopping(status: "Finishing running fetches."))
        for server in servers { server.stop() }
        fronts.stop()
        let loop = loop
        broker.assumeIsolated { broker in
            broker.shutDown(reason: "the broker was told to stop", grace: Self.grace) { loop.stop() }
        }
    }

    /// Reloads the configuration. Reads the file on another thread, because a file system may hang.
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

    private func reportProblems(of settings: Settings) {
        for problem in settings.fileProblems {
            log.error("a file that the configuration names cannot be used", metadata: ["reason": "\(problem)"])
        }
    }

    /// Applies a reloaded configuration, unless it is invalid.
    private func takeOver(_ loaded: Result<Settings, StartFailure>) -> Reloading {
        do throws(StartFailure) {
            let settings = try loaded.get()
            let challengeDeadline = challengeDeadline
            audit?.configure(isEnabled: settings.auditEnabled, limits: AuditLimits(settings))
            keyring.setCallLimit(settings.keyringCall)
            netrc.check(settings.netrcFile)
            broker.assumeIsolated { $0.reconfigure { $0.apply(settings, challengeDeadline: challengeDeadline) } }
            log.notice("configuration reloaded", metadata: ["file": "\(source.path ?? "none")"])
            reportProblems(of: settings)
            let options = settings.optionsThatNeedRestart(since: started)
            if options.isEmpty { return settings.fileProblems.isEmpty ? .applied : .lacksFile }
            log.warning(
                "restart the broker for changed options to take effect",
                metadata: ["options": "\(options.joined(separator: ", "))"])
            return .needsRestart(options)
        } catch {
            log.error("configuration not changed", metadata: ["reason": "\(error.text)"])
            return .refused
        }
    }
}

/// The result of reloading the configuration.
enum Reloading {
    /// All options are in effect.
    case applied
    /// All options except these are in effect.
    case needsRestart([String])
    /// A file that the configuration names cannot be used. What needs it is not in effect, everything else is.
    case lacksFile
    /// The new configuration is invalid. The previous one remains in effect.
    case refused

    /// The status line for the service manager.
    var status: String {
        switch self {
        case .applied: "Listening."
        case .needsRestart(let options):
            "Listening; restart the broker for \(options.joined(separator: " and ")) to take effect."
        case .lacksFile: "Listening; a file that the configuration names cannot be used, see the log."
        case .refused: "Listening; the configuration is invalid."
        }
    }
}
