internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Fetches that wait for others: none of them waits for longer than it may.
extension Router {
    func beginWait(of fetch: RunningFetch) { fetch.state = .waiting(waitTimer(of: fetch)) }

    func beginLookUp(of fetch: RunningFetch, _ begin: (KeyringDesk) -> Void) {
        fetch.state = .lookingUp(waitTimer(of: fetch))
        begin(keyring)
    }

    /// What `fetch/waiting` and `fetch/list` say.
    func describe(_ wait: FetchWait) -> JSON {
        [
            "for": .string(wait.reason.rawValue), "protectionSpace": wait.space.json,
            "sinceMs": .integer(max(0, (clock.now - wait.since).wholeMilliseconds)),
        ]
    }

    private func waitTimer(of fetch: RunningFetch) -> DeadlineTimer? {
        let shortest = Duration.milliseconds(10)
        let id = fetch.id
        return table.deadline(of: id).map { deadline in
            after(max(shortest, deadline - clock.now)) { $0.waitIsOver(id) }
        }
    }

    private func waitIsOver(_ id: FetchID) {
        perform(table.expire(id, environment))
        // The deadline may have moved.
        if let fetch = fetches[id], case .waiting? = fetch.state { beginWait(of: fetch) }
    }
}
