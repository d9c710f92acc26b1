internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Fetches that wait for others: none of them waits for longer than it may.
extension Router {
    /// What `fetch/waiting` and `fetch/list` say.
    func describe(_ wait: FetchWait) -> JSON {
        [
            "for": .string(wait.reason.rawValue), "protectionSpace": wait.space.json,
            "sinceMs": .integer(max(0, (clock.now - wait.since).wholeMilliseconds)),
        ]
    }

    /// For another fetch, or for a look-up.
    func beginWait(of fetch: RunningFetch) {
        let shortest = Duration.milliseconds(10)
        let id = fetch.id
        fetch.waitTimer = table.deadline(of: id).map { deadline in
            way.after(max(shortest, deadline - context.now)) { $0.waitIsOver(id) }
        }
    }

    private func waitIsOver(_ id: FetchID) {
        perform(table.expire(id, environment))
        // The deadline may have moved.
        if let fetch = fetches[id], fetch.waitTimer != nil, table.wait(of: id) != nil { beginWait(of: fetch) }
    }
}
