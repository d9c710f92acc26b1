internal import CCurl
internal import WatchwordCore

/// The bodies of an engine that are on their way. Lives on the engine's thread.
struct FlowTable {
    private var flows: [TransferID: BodyFlow] = [:]
    /// Where the bytes come from of those that libcurl has done with.
    private var stores: [TransferID: BodyStore] = [:]

    var isEmpty: Bool { flows.isEmpty }

    subscript(id: TransferID) -> BodyFlow? { flows[id] }

    mutating func add(_ flow: BodyFlow, _ id: TransferID) { flows[id] = flow }

    mutating func add(_ flow: BodyFlow, from store: BodyStore, _ id: TransferID) {
        add(flow, id)
        stores[id] = store
    }

    /// Fills up those that are fed from what was kept.
    mutating func feed() {
        for (id, store) in stores {
            if let flow = flows[id], !store.feed(flow) { stores[id] = nil }
        }
    }

    /// Those for whose bytes there is room again.
    var resumable: [(id: TransferID, flow: BodyFlow)] {
        flows.filter { $0.value.mayResume }.map { (id: $0.key, flow: $0.value) }
    }

    /// Takes out those that have ended, and says which of them have not got everything.
    mutating func removeEnded() -> [(id: TransferID, failure: TransferFailure)] {
        var failed: [(id: TransferID, failure: TransferFailure)] = []
        for (id, flow) in flows {
            guard let outcome = flow.outcome else { continue }
            (flows[id], stores[id]) = (nil, nil)
            if case .failure(let failure) = outcome { failed.append((id, failure)) }
        }
        return failed
    }

    /// Sends what was collected in this turn.
    func flush() {
        for flow in flows.values { flow.flush() }
    }

    func giveUpAll(_ failure: TransferFailure) {
        for flow in flows.values { flow.giveUp(failure) }
    }

    // MARK: Waiting

    /// What to wait for. Never for nothing: libcurl does not tell what else there may be, and would not wait for it either.
    var descriptors: [curl_waitfd] {
        flows.values.compactMap { flow in
            guard let (descriptor, forRoom, forInput) = flow.watched else { return nil }
            let events = (forRoom ? CURL_WAIT_POLLOUT : 0) | (forInput ? CURL_WAIT_POLLIN : 0)
            return events == 0 ? nil : curl_waitfd(fd: descriptor, events: CShort(events), revents: 0)
        }
    }

    var nextDeadline: ContinuousClock.Instant? { flows.values.compactMap(\.deadline).min() }

    func act(on descriptors: some Sequence<curl_waitfd>) {
        let ready = Set(descriptors.filter { $0.revents != 0 }.map(\.fd))
        guard !ready.isEmpty else { return }
        for flow in flows.values where flow.watched.map({ ready.contains($0.descriptor) }) ?? false { flow.act() }
    }

    func expire(at now: ContinuousClock.Instant) {
        for flow in flows.values where flow.deadline.map({ $0 <= now }) ?? false { flow.giveUp(.readerIdle) }
    }
}
