internal import EventLoop
internal import WatchwordCore

/// The bodies that an engine is delivering. Bodies with new events are served at the end of the loop's turn. Used on the
/// engine's loop only.
final class FlowTable: TurnEndHandler {
    private let loop: EventLoop
    weak var engine: TransferEngine?
    private var slots: [TransferID: FlowSlot] = [:]
    private var touched: [FlowSlot] = []
    private var isPlanned = false

    init(on loop: EventLoop) { self.loop = loop }

    subscript(id: TransferID) -> BodyFlow? { slots[id]?.flow }

    /// - Parameter store: the source of the bytes, if libcurl has finished the transfer.
    func add(_ flow: BodyFlow, from store: BodyStore? = nil, _ id: TransferID) {
        let slot = FlowSlot(id, flow, store, on: loop)
        slots[id] = slot
        flow.touched = { [unowned self, unowned slot] in touch(slot) }
        touch(slot)
    }

    func abortAll(_ failure: TransferFailure) {
        for slot in slots.values { slot.flow.abort(failure) }
        turnEnds()
    }

    private func touch(_ slot: FlowSlot) {
        guard !slot.isTouched else { return }
        slot.isTouched = true
        touched.append(slot)
        guard !isPlanned else { return }
        isPlanned = true
        loop.atEndOfTurn(self)
    }

    /// Sends buffered bytes, resumes transfers whose buffers have room again, and removes finished bodies.
    func turnEnds() {
        isPlanned = false
        let slots = touched
        touched = []
        for slot in slots {
            slot.isTouched = false
            serve(slot)
        }
    }

    private func serve(_ slot: FlowSlot) {
        slot.feed()
        let flow = slot.flow
        flow.flush()
        if flow.mayResume, let transfer = engine?.running[slot.id] {
            flow.isPaused = false
            engine?.resume(transfer)
        }
        guard let outcome = flow.outcome else { return slot.watch() }
        slot.close()
        slots[slot.id] = nil
        if case .failure(let failure) = outcome { engine?.end(slot.id, .failure(failure)) }
    }
}

/// One body in delivery, with the descriptor and the timer that the loop watches for it.
final class FlowSlot: ReadinessHandler {
    let id: TransferID
    let flow: BodyFlow
    private var store: BodyStore?
    var isTouched = false
    private let loop: EventLoop
    private var watched: Int32?
    private lazy var timer = LoopTimer(on: loop) { [unowned self] in expire() }

    init(_ id: TransferID, _ flow: BodyFlow, _ store: BodyStore?, on loop: EventLoop) {
        (self.id, self.flow, self.store, self.loop) = (id, flow, store, loop)
    }

    /// Fills the flow from its store, if it has one.
    func feed() {
        if let store, !store.feed(flow) { self.store = nil }
    }

    func watch() {
        timer.set(flow.deadline)
        guard let (descriptor, forRoom, forInput) = flow.watched else { return }
        var events: ReadyEvents = forRoom ? .writable : []
        if forInput { events.insert(.readable) }
        watched = descriptor
        loop.watch(descriptor, events, self)
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) { flow.act() }

    private func expire() {
        guard let deadline = flow.deadline else { return }
        if deadline <= loop.now { flow.abort(.readerIdle) } else { timer.set(deadline) }
    }

    func close() {
        // The body may already have closed the descriptor.
        if let watched { loop.forget(watched, of: self) }
        watched = nil
        timer.cancel()
        flow.touched = nil
    }
}
