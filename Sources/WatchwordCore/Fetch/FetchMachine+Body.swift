internal import WatchwordProtocol

/// The request's body, where it comes through a socket: what was sent of it may be gone.
extension FetchMachine {
    /// What has to be done before the body can be sent; `nil` when it can be sent now.
    mutating func bodyObstacle(_ context: inout FetchContext) -> FetchStep? {
        guard case .stream? = chain.hop.body else { return nil }
        let sent = [logins.outgoing.server, chain.isTunnel ? nil : logins.outgoing.proxy].compactMap { $0 }
        if let covering = sent.first(where: { $0.challenge.digest?.protection == .authInt }) {
            let text =
                "\(covering.challenger.text) requires a login that covers the body (Digest with qop=auth-int). That takes a body that comes inline."
            return fail(FetchFailure(.notSupported, text), &context)
        }
        guard bodyState == .spent else { return nil }
        guard intent.plan.givesBodyAgain else {
            let text =
                "\(chain.server.text) wants the request again, and no copy of its body is left: it was larger than the quota for temporary files, or the disk is full; answer fetch/needBody to send it again"
            return fail(FetchFailure(.bodyNotReplayable, text), &context)
        }
        context.turns.endTrial(by: intent.id)
        state = .needingBody
        return FetchStep(.needBody)
    }

    /// The connection has ended before the server said anything, and the body is spent.
    mutating func sendAgain(_ context: inout FetchContext) -> FetchStep {
        guard logins.search.situation.beginRound() else {
            let text = "\(chain.server.text) has ended too many connections before it answered. The fetch has ended."
            return fail(FetchFailure(.connectionLost, text), &context)
        }
        bodyState = .spent
        return transfer(&context)
    }

    mutating func given(_ body: RequestBody?, _ context: inout FetchContext) -> FetchStep {
        guard let body else {
            let text = "\(chain.server.text) wants the request again, and the client has not given its body again."
            return fail(FetchFailure(.bodyNotReplayable, text), &context)
        }
        logins.search.situation.chain.give(body)
        bodyState = .untouched
        return transfer(&context)
    }
}
