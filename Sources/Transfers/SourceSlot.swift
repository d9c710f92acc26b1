internal import EventLoop
internal import WatchwordCore

/// A request's body that comes through a socket, and the transfer that sends it. Lives on the engine's loop.
final class SourceSlot: ReadinessHandler {
    let source: BodySource
    weak var user: Transfer? {
        didSet { hasPassedRefusal = false }
    }
    /// libcurl was told once to go on with a transfer that was refused.
    private var hasPassedRefusal = false
    private unowned var engine: TransferEngine
    private var watched: Int32?
    private lazy var timer = LoopTimer(on: engine.loop) { [unowned self] in giveUp() }

    init(_ source: BodySource, on engine: TransferEngine) { (self.source, self.engine) = (source, engine) }

    /// Resumes the transfer when more has come, and ends it when nothing does.
    func watch() {
        timer.set(source.deadline)
        guard watched != source.watched else { return }
        unwatch()
        watched = source.watched
        if let watched { engine.loop.watch(watched, .readable, self) }
    }

    /// Waits for more of what libcurl was told to wait for. It sends nothing more to who has refused, but goes on waiting until
    /// it is told to look again; once, because it may as well want the rest.
    func serve() {
        guard user?.isRefused == true, !hasPassedRefusal else { return watch() }
        hasPassedRefusal = true
        resume()
    }

    private func unwatch() {
        // The body may have closed it.
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

    private func giveUp() {
        guard source.isPaused, let deadline = source.deadline else { return }
        guard deadline <= engine.loop.now else { return timer.set(deadline) }
        source.isPaused = false
        unwatch()
        if let user { engine.end(user.id, .failure(.noMoreBody)) }
    }

    /// It goes to another engine, or nowhere.
    func close() {
        unwatch()
        timer.cancel()
    }
}

extension TransferFailure {
    fileprivate static let noMoreBody = TransferFailure(
        .requestBodyIncomplete,
        "Nothing has come of the request's body for \(EngineLimits.readerIdleSeconds) seconds.")
}
