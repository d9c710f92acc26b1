internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Bodies that are read in steps.
extension Broker {
    func hold(_ body: [UInt8], for fetch: RunningFetch, of connection: ClientConnection) -> Bool {
        let name = fetch.id.description
        guard connection.bodies.hold(body, for: name, now: clock.now) else { return false }
        Task { [weak connection] in
            while let deadline = connection?.bodies.deadline(of: name) {
                guard deadline > clock.now else {
                    connection?.bodies.drop(name)
                    return
                }
                try? await clock.sleep(for: deadline - clock.now)
            }
        }
        return true
    }

    func read(_ params: FetchReadParams, of connection: ClientConnection) throws -> JSON {
        guard let result = connection.bodies.read(params, now: clock.now) else {
            throw RPCError(
                .unknownFetch,
                "No body is held for the fetch \"\(params.fetchID.shortened)\": it was read to its end, or waited too long."
            )
        }
        return result.json
    }
}
