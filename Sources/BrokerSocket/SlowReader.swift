internal import EventLoop

/// Observes a client with unsent output. Reports the amount of unsent output to the service at intervals, and
/// disconnects a client that reads too slowly.
final class SlowReader {
    private static let reportInterval = Duration.milliseconds(50)

    private unowned let client: ClientSocket
    private let limits: ServerLimits
    /// The value of `sentBytes` at the previous check.
    private var sentBefore = 0
    private lazy var reportTimer = LoopTimer(on: loop) { [unowned self] in report() }
    private lazy var checkTimer = LoopTimer(on: loop) { [unowned self] in check() }
    private let loop: EventLoop

    init(of client: ClientSocket, on loop: EventLoop, _ limits: ServerLimits) {
        (self.client, self.loop, self.limits) = (client, loop, limits)
    }

    /// Starts observing, if not started already.
    func follow() {
        if reportTimer.deadline == nil { reportTimer.set(in: Self.reportInterval) }
        guard checkTimer.deadline == nil else { return }
        sentBefore = client.sentBytes
        checkTimer.set(in: limits.readerPause)
    }

    /// Pauses observing, because all output is sent.
    func rest() {
        reportTimer.set(nil)
        checkTimer.set(nil)
    }

    func stop() {
        reportTimer.cancel()
        checkTimer.cancel()
    }

    private func report() {
        client.reportUnread()
        if client.waitingBytes > 0 { reportTimer.set(in: Self.reportInterval) }
    }

    private func check() {
        guard client.waitingBytes > 0 else { return }
        if client.sentBytes - sentBefore < limits.readerBytes { client.abandon() } else { follow() }
    }
}
