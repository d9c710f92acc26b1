internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// The properties of a connection that distinguish one identity from another. If they change under the same identity, its
/// previous connections are not used again: a file may hold another certificate than when they were made.
struct ConnectionMarks: Equatable {
    private let trust: TrustPolicy
    private let certificate: CertificateContent?
    private let handshakes: [Handshake]

    /// - Parameter certificate: the content of the certificate that this request shows; whether its key could be unlocked was
    ///   checked when it was loaded.
    init(_ request: TransferRequest, certificate: CertificateContent?) {
        trust = request.trust
        self.certificate = certificate
        handshakes = request.handshakes
    }
}

/// The connections of one identity: a multi handle of its own, moved by the engine's thread.
///
/// The thread sleeps in the poll of the default handle; so this one tells, through libcurl's socket callbacks, which sockets
/// and which time to wait for. Lives on the engine's thread.
final class IdentityPool {
    let multi: MultiHandle
    let marks: ConnectionMarks
    private let idleTime: Duration
    private var sockets: [curl_socket_t: CShort] = [:]
    private var wakeTime: ContinuousClock.Instant?
    private(set) var running = 0
    private var lastUse = ContinuousClock.now

    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(
        marks: ConnectionMarks, idleTime: Duration, connectionsPerHost: Int = EngineLimits.connectionsPerHost
    ) throws(TransferFailure) {
        self.marks = marks
        self.idleTime = idleTime
        multi = try MultiHandle(connectionsPerHost: connectionsPerHost)
        do throws(TransferFailure) {
            try multi.watch(
                Unmanaged.passUnretained(self).toOpaque(),
                sockets: { _, socket, event, user, _ in
                    IdentityPool.at(user).record(socket, event)
                    return 0
                },
                timer: { _, milliseconds, user in
                    IdentityPool.at(user).record(milliseconds: milliseconds)
                    return 0
                })
        } catch {
            multi.close()
            throw error
        }
    }

    func add(_ transfer: Transfer) throws(TransferFailure) {
        try multi.add(transfer.easy)
        running += 1
    }

    func remove(_ transfer: Transfer) {
        multi.remove(transfer.easy)
        running -= 1
        lastUse = .now
    }

    /// Closes the connections. Nothing may be called afterwards.
    func close() { multi.close() }

    /// When it has to be looked at, if nothing happens: for libcurl's sake, or to be closed.
    var nextTime: ContinuousClock.Instant? {
        running > 0 ? wakeTime : min(wakeTime ?? closingTime, closingTime)
    }

    func isIdle(at now: ContinuousClock.Instant) -> Bool { running == 0 && now >= closingTime }

    private var closingTime: ContinuousClock.Instant { lastUse + idleTime }

    /// What to wait for.
    var descriptors: [curl_waitfd] { sockets.map { curl_waitfd(fd: $0.key, events: $0.value, revents: 0) } }

    /// Moves the transfers: those whose sockets are ready, and those whose time has come.
    func act(on ready: some Sequence<curl_waitfd>, at now: ContinuousClock.Instant) {
        for one in ready where one.revents != 0 && sockets[one.fd] != nil {
            let input = one.revents & CShort(CURL_WAIT_POLLIN | CURL_WAIT_POLLPRI) != 0 ? CURL_CSELECT_IN : 0
            let output = one.revents & CShort(CURL_WAIT_POLLOUT) != 0 ? CURL_CSELECT_OUT : 0
            multi.act(on: one.fd, input | output)
        }
        if let time = wakeTime, time <= now {
            wakeTime = nil
            multi.act(on: CURL_SOCKET_TIMEOUT)
        }
    }

    /// Lets libcurl look at every socket: see `QuietTime`.
    func askAgain() {
        guard running > 0 else { return }
        for socket in Array(sockets.keys) where sockets[socket] != nil { multi.act(on: socket) }
    }

    // MARK: Callbacks: they record, and nothing else

    private static func at(_ user: UnsafeMutableRawPointer?) -> IdentityPool {
        guard let user else { preconditionFailure("libcurl calls back without its owner") }
        return Unmanaged<IdentityPool>.fromOpaque(user).takeUnretainedValue()
    }

    private func record(_ socket: curl_socket_t, _ event: Int32) {
        let events: CShort? =
            switch event {
            case CURL_POLL_IN: CShort(CURL_WAIT_POLLIN)
            case CURL_POLL_OUT: CShort(CURL_WAIT_POLLOUT)
            case CURL_POLL_INOUT: CShort(CURL_WAIT_POLLIN | CURL_WAIT_POLLOUT)
            default: nil
            }
        sockets[socket] = events
    }

    private func record(milliseconds: Int) {
        wakeTime = milliseconds < 0 ? nil : .now + .milliseconds(milliseconds)
    }
}
