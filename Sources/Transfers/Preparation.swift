internal import EventLoop
internal import Threads
internal import WatchwordCore
internal import WatchwordProtocol

/// The parts of a transfer that may take long to obtain: client certificates and Kerberos tokens.
struct Prepared {
    var certificate: LoadedCertificate?
    var login: NegotiateLogin?
    var proxyLogin: NegotiateLogin?

    /// Prepares `request`. Blocks the calling thread.
    static func make(for request: SharedRequest, tokenModule: String?) -> Result<Prepared, TransferFailure> {
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

extension SharedRequest {
    var needsPreparation: Bool { value.clientCertificate != nil || handshakes.contains { $0.scheme == .negotiate } }
}

/// The transfers that wait for their preparation. Each identity has its own thread for preparations, so that a thread that
/// hangs does not delay other identities. Used on the engine's loop only.
final class Preparations {
    typealias Report = (Result<Prepared, TransferFailure>) -> Void

    struct Waiting {
        let job: TransferJob
        let deadline: ContinuousClock.Instant
        fileprivate let report: Report
    }

    private let loop: EventLoop
    /// The PKCS#11 module; `nil` for that of p11-kit.
    private let tokenModule: String?
    private let expired: (TransferID) -> Void
    private var waiting: [TransferID: Waiting] = [:]
    /// The transfers that each identity's thread prepares next. An identity has a thread while it has an entry here.
    private var queues: [ConnectionIdentity: [TransferID]] = [:]
    private lazy var timer = LoopTimer(on: loop) { [unowned self] in endLate() }

    /// - Parameter expired: called for each transfer that has waited for the whole timeout of its request, and must remove it.
    init(on loop: EventLoop, tokenModule: String?, expired: @escaping (TransferID) -> Void) {
        (self.loop, self.tokenModule, self.expired) = (loop, tokenModule, expired)
    }

    var ids: [TransferID] { Array(waiting.keys) }

    /// - Parameter report: called later, unless the transfer is removed before.
    /// - Throws: `TransferFailure` if too many identities are being prepared already.
    func add(_ job: TransferJob, report: @escaping Report) throws(TransferFailure) {
        let identity = job.request.identity
        let isBusy = queues[identity] != nil
        guard isBusy || queues.count < EngineLimits.preparations else {
            throw TransferFailure(
                .internalError,
                "too many logins wait for files, tokens or tickets (limit \(EngineLimits.preparations)); try again later",
                cause: .tooManyWaiting)
        }
        waiting[job.id] = Waiting(job: job, deadline: .now + job.request.timeout, report: report)
        queues[identity, default: []].append(job.id)
        if !isBusy { startNext(of: identity) }
        setTimer()
    }

    /// Removes and returns a waiting transfer; `nil` if it does not wait. Does not stop the thread.
    func remove(_ id: TransferID) -> Waiting? {
        waiting.isEmpty ? nil : waiting.removeValue(forKey: id)
    }

    /// Stops the timer: `expired` is not called again.
    func stop() { timer.cancel() }

    private func endLate() {
        for (id, entry) in waiting where entry.deadline <= loop.now { expired(id) }
        setTimer()
    }

    private func setTimer() { timer.set(waiting.values.map(\.deadline).min()) }

    private func startNext(of identity: ConnectionIdentity) {
        while let id = queues[identity]?.first {
            queues[identity]?.removeFirst()
            guard let request = waiting[id]?.job.request else { continue }
            let this = LoopBound(self, to: loop)
            let isStarted = OwnedThread.detach { [loop, tokenModule] in
                let prepared = LoopBound(Prepared.make(for: request, tokenModule: tokenModule), to: loop)
                loop.post { this.value.finish(prepared.value, for: id, of: identity) }
            }
            if !isStarted {
                let failure = TransferFailure(.outOfMemory, "cannot start a thread for a transfer")
                loop.post { this.value.finish(.failure(failure), for: id, of: identity) }
            }
            return
        }
        queues[identity] = nil
    }

    private func finish(
        _ prepared: Result<Prepared, TransferFailure>, for id: TransferID, of identity: ConnectionIdentity
    ) {
        startNext(of: identity)
        waiting[id]?.report(prepared)
    }
}
