internal import EventLoop

/// Follows how a client takes what waits for it, until nothing waits any more: tells the service, because nobody says when the
/// kernel has taken something, and disconnects who takes too little.
final class SlowReader {
    private static let tellingPause = Duration.milliseconds(50)

    private unowned let client: ClientSocket
    private let limits: ServerLimits
    /// What it had taken when it was judged last.
    private var sentBefore = 0
    private lazy var telling = LoopTimer(on: loop) { [unowned self] in tell() }
    private lazy var judging = LoopTimer(on: loop) { [unowned self] in judge() }
    private let loop: EventLoop

    init(of client: ClientSocket, on loop: EventLoop, _ limits: ServerLimits) {
        (self.client, self.loop, self.limits) = (client, loop, limits)
    }

    /// Something waits.
    func follow() {
        if telling.deadline == nil { telling.set(in: Self.tellingPause) }
        guard judging.deadline == nil else { return }
        sentBefore = client.sentBytes
        judging.set(in: limits.readerPause)
    }

    /// It has taken everything.
    func rest() {
        telling.set(nil)
        judging.set(nil)
    }

    func stop() {
        telling.cancel()
        judging.cancel()
    }

    private func tell() {
        client.tell()
        if client.waitingBytes > 0 { telling.set(in: Self.tellingPause) }
    }

    private func judge() {
        guard client.waitingBytes > 0 else { return }
        if client.sentBytes - sentBefore < limits.readerBytes { client.abandon() } else { follow() }
    }
}
