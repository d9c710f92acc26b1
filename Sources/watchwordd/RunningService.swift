import Broker
import BrokerSocket
import Glibc
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

    private let group: MultiThreadedEventLoopGroup
    private let engine: TransferEngine
    private let broker: Broker
    private let server: BrokerServer
    private let removeFile: @Sendable () -> Void
    private let log: Logger

    static func start(_ options: Daemon, inheritedSocket: Int32?, log: Logger) async throws -> RunningService {
        do {
            let location = SocketLocation(
                explicit: options.socket, environment: { name in getenv(name).map { String(cString: $0) } },
                uid: getuid())
            let socket = try inheritedSocket.map { try ListeningSocket(inherited: $0) } ?? ListeningSocket(at: location)
            let engine = try TransferEngine(caFile: options.caFile)
            return try await start(options, socket: socket, engine: engine, log: log)
        } catch let failure as SocketFailure {
            throw StartFailure(failure)
        } catch let failure as TransferFailure {
            throw StartFailure(failure)
        }
    }

    private static func start(
        _ options: Daemon, socket: borrowing ListeningSocket, engine: TransferEngine, log: Logger
    ) async throws -> RunningService {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let broker = Broker(
            loop: EventLoopAdapter(loop), transfers: engine,
            options: BrokerOptions(
                version: WatchwordVersion.current, challengeDeadline: .milliseconds(options.challengeDeadlineMs),
                document: ProtocolDocument.load()),
            log: log)
        let server = try await BrokerServer.start(
            on: loop, socket: socket, service: broker, policy: PeerPolicy(uid: getuid()), log: log)
        log.notice("listening", metadata: ["version": "\(WatchwordVersion.current)", "pid": "\(getpid())"])
        return RunningService(
            group: group, engine: engine, broker: broker, server: server, removeFile: socket.fileRemoval, log: log)
    }

    /// In the order in which nothing is lost: no new clients, then no new requests, then no transfers.
    func stop() async {
        removeFile()
        await server.stop()
        await broker.shutDown(reason: "The broker was told to stop.", grace: Self.grace)
        engine.shutDown()
        try? await group.shutdownGracefully()
        log.notice("stopped")
    }
}
