internal import CPlatform
internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// What a transfer needs and what may take long to get.
struct Prepared: Sendable {
    var certificate: LoadedCertificate?
    var login: NegotiateLogin?
    var proxyLogin: NegotiateLogin?

    /// Blocks the calling thread.
    static func make(for request: TransferRequest, tokenModule: String?) -> Result<Prepared, TransferFailure> {
        Result { () throws(TransferFailure) in
            var prepared = Prepared()
            if let given = request.clientCertificate {
                prepared.certificate = try LoadedCertificate(given, tokenModule: tokenModule)
            }
            for handshake in request.handshakes where handshake.scheme == .negotiate {
                let isOrigin = handshake.target == .origin
                let host = isOrigin ? request.url.origin.host.string : request.proxy?.host
                let login = try NegotiateLogin(
                    host: host ?? "", delegates: handshake.delegates, serverEndPoint: handshake.serverEndPoint)
                if isOrigin { prepared.login = login } else { prepared.proxyLogin = login }
            }
            return prepared
        }
    }
}

extension TransferRequest {
    var needsPreparation: Bool { clientCertificate != nil || handshakes.contains { $0.scheme == .negotiate } }
}

/// The transfers that wait for what they need. It is got on threads of their own, one for each identity, so that what hangs
/// holds up nobody else. Lives on the engine's loop.
struct PreparationTable {
    typealias Report = @Sendable (Result<Prepared, TransferFailure>) -> Void

    struct Waiting {
        let request: TransferRequest
        let completion: Transfer.Completion
        let deadline: ContinuousClock.Instant
        fileprivate let report: Report
    }

    /// The PKCS#11 module; `nil` for that of p11-kit.
    let tokenModule: String?
    private var waiting: [TransferID: Waiting] = [:]
    /// What each identity's thread does next; it has one as long as it is here.
    private var queues: [ConnectionIdentity: [TransferID]] = [:]

    init(tokenModule: String?) { self.tokenModule = tokenModule }

    var isEmpty: Bool { waiting.isEmpty }
    var ids: [TransferID] { Array(waiting.keys) }
    var nextDeadline: ContinuousClock.Instant? { waiting.values.map(\.deadline).min() }

    /// - Parameter report: called on a thread of the table's, never before this returns; `finish` has to follow.
    /// - Throws: `TransferFailure` when too many threads hang already.
    mutating func add(
        _ id: TransferID, _ request: TransferRequest, _ completion: @escaping Transfer.Completion,
        report: @escaping Report
    ) throws(TransferFailure) {
        let isBusy = queues[request.identity] != nil
        guard isBusy || queues.count < EngineLimits.preparations else {
            throw TransferFailure(
                .internalError, "\(queues.count) logins wait for files, tokens or tickets: no more are begun.",
                cause: .tooManyWaiting)
        }
        waiting[id] = Waiting(
            request: request, completion: completion, deadline: .now + request.timeout, report: report)
        queues[request.identity, default: []].append(id)
        if !isBusy { startNext(of: request.identity) }
    }

    /// Whoever waits, once; `nil` when it does not wait any more. The thread goes on by itself.
    mutating func remove(_ id: TransferID) -> Waiting? { waiting.removeValue(forKey: id) }

    /// The thread of `identity` has ended.
    mutating func finish(_ identity: ConnectionIdentity) { startNext(of: identity) }

    /// Those whose time is over.
    func expired(at now: ContinuousClock.Instant) -> [TransferID] {
        waiting.filter { $0.value.deadline <= now }.map(\.key)
    }

    private mutating func startNext(of identity: ConnectionIdentity) {
        while let id = queues[identity]?.first {
            queues[identity]?.removeFirst()
            guard let (request, report) = waiting[id].map({ ($0.request, $0.report) }) else { continue }
            let isStarted = DetachedThread.start { [tokenModule] in
                report(Prepared.make(for: request, tokenModule: tokenModule))
            }
            if !isStarted { report(.failure(TransferFailure(.outOfMemory, "No thread for a transfer."))) }
            return
        }
        queues[identity] = nil
    }
}

/// A thread that nobody waits for.
enum DetachedThread {
    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    static func start(_ run: @escaping @Sendable () -> Void) -> Bool {
        let body = Unmanaged.passRetained(Body(run))
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                // The stack of a thread that has ended stays, for the next one.
                watchword_clear_stack()
                return nil
            }, body.toOpaque())
        guard status == 0 else {
            body.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
