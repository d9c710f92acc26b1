internal import WatchwordCore

/// Fetches that wait for others: none of them waits for longer than it may.
extension Broker {
    func beginWait(of fetch: RunningFetch) { fetch.state = .waiting(waitTimer(of: fetch)) }

    private func waitTimer(of fetch: RunningFetch) -> DeadlineTimer? {
        let shortest = Duration.milliseconds(10)
        let id = fetch.id
        return table.deadline(of: id).map { deadline in
            DeadlineTimer(after: max(shortest, deadline - clock.now), clock) { [self] in await waitIsOver(id) }
        }
    }

    private func waitIsOver(_ id: FetchID) {
        perform(table.expire(id, environment))
        // The deadline may have moved.
        if let fetch = fetches[id], case .waiting? = fetch.state { beginWait(of: fetch) }
    }
}
