internal import WatchwordProtocol

/// The request's body, where it comes through a socket: what was sent of it may be gone.
extension FetchMachine {
    /// What has to be done before the body can be sent; `nil` when it can be sent now.
    mutating func bodyObstacle(_ context: inout FetchContext) -> FetchStep? {
        guard case .stream? = hop.body else { return nil }
        let logins = [outgoing.server, isTunnel ? nil : outgoing.proxy].compactMap { $0 }
        let covering = logins.first { $0.challenge.digest?.protection == .authInt }
        if let covering {
            let text =
                "\(covering.challenger.text) wants a log-in that covers the body (Digest with qop=auth-int). That takes a body that comes inline."
            return fail(FetchFailure(.notSupported, text), &context)
        }
        guard bodyState == .spent else { return nil }
        guard plan.givesBodyAgain else {
            let text =
                "\(server.text) wants the request again, and no copy of its body is left: it was larger than the quota for temporary files, or the disk is full; answer fetch/needBody to send it again"
            return fail(FetchFailure(.bodyNotReplayable, text), &context)
        }
        context.turns.endTrial(by: id)
        state = .needingBody
        return FetchStep(.needBody)
    }

    /// The connection has ended before the server said anything, and the body is spent.
    mutating func sendAgain(_ context: inout FetchContext) -> FetchStep {
        rounds += 1
        guard rounds <= Limits.authenticationRounds else {
            let text = "\(server.text) has ended too many connections before it answered. The fetch has ended."
            return fail(FetchFailure(.connectionLost, text), &context)
        }
        bodyState = .spent
        return transfer(&context)
    }

    /// The client has given the body again; `nil` when it has not.
    mutating func given(
        _ body: RequestBody?, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .needingBody = state else { return unexpected(&context) }
        guard let body else {
            let text = "\(server.text) wants the request again, and the client has not given its body again."
            return fail(FetchFailure(.bodyNotReplayable, text), &context)
        }
        hop.body = body
        bodyState = .untouched
        return transfer(&context)
    }
}
