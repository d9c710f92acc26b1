internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// A request's body that the client sends through a socket, and the transfer that uploads it. Used on the engine's loop only.
final class SourceSlot: ReadinessHandler {
    let source: BodySource
    weak var user: CurlTransfer? {
        didSet { hasPassedRefusal = false }
    }
    /// Whether a transfer whose request was refused has been resumed once.
    private var hasPassedRefusal = false
    private unowned var engine: TransferEngine
    private var watched: Int32?
    private lazy var timer = LoopTimer(on: engine.loop) { [unowned self] in checkDeadline() }

    init(_ source: BodySource, on engine: TransferEngine) { (self.source, self.engine) = (source, engine) }

    /// Watches the socket and the deadline: more bytes resume the transfer, and a timeout ends it.
    func watch() {
        timer.set(deadline)
        guard watched != source.watched else { return }
        unwatch()
        watched = source.watched
        if let watched { engine.loop.watch(watched, .readable, self) }
    }

    /// Waits for more bytes after libcurl has paused. After a refusal libcurl sends nothing more, but notices the refusal only
    /// when it is resumed. It is resumed once only, because libcurl may also want the rest of the body.
    func serve() {
        guard user?.isRefused == true, !hasPassedRefusal else { return watch() }
        hasPassedRefusal = true
        resume()
    }

    /// Another protocol may be silent for any time.
    private var deadline: ContinuousClock.Instant? {
        user?.request.options.switchesProtocol == true ? nil : source.deadline
    }

    private func unwatch() {
        // The body may already have closed the descriptor.
        if let watched { engine.loop.forget(watched, of: self) }
        watched = nil
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) { resume() }

    func resume() {
        unwatch()
        guard source.isPaused, let user else { return }
        source.isPaused = false
        engine.resume(user)
        if source.isPaused { watch() }
    }

    private func checkDeadline() {
        guard source.isPaused, let deadline else { return }
        guard deadline <= engine.loop.now else { return timer.set(deadline) }
        source.isPaused = false
        unwatch()
        if let user { engine.end(user.id, .failure(.noMoreBody)) }
    }

    /// Stops watching. Called when the source moves to another engine or is released.
    func close() {
        unwatch()
        timer.cancel()
    }
}
