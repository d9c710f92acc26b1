internal import WatchwordProtocol

/// Request bodies that are read from a socket. They may not be available a second time.
extension FetchMachine {
    /// Returns the step that is needed before the body can be sent; `nil` if it can be sent now.
    mutating func bodyObstacle(_ context: inout FetchContext) -> FetchStep? {
        guard case .stream? = chain.hop.body else { return nil }
        let sent = [logins.outgoing.server, chain.isTunnel ? nil : logins.outgoing.proxy].compactMap { $0 }
        if let covering = sent.first(where: { $0.challenge.digest?.protection == .authInt }) {
            let text =
                "\(covering.challenger.text) requires a login that covers the body (Digest with qop=auth-int); send the body inline"
            return fail(FetchFailure(.notSupported, text), &context)
        }
        guard bodyState == .spent else { return nil }
        guard intent.plan.canResendBody else {
            let text =
                "the request to \(chain.server.text) must be sent again, but its body was not copied: it exceeded the quota for temporary files, or the disk is full; use a body that the client can send again (fetch/needBody), such as a file"
            return fail(FetchFailure(.bodyNotReplayable, text), &context)
        }
        context.queues.endAttempt(by: intent.id)
        state = .needingBody
        return FetchStep(.needBody)
    }

    /// Sends the request again after the connection was closed without a response. A part of the body was sent and is
    /// no longer available.
    mutating func sendAgain(_ context: inout FetchContext) -> FetchStep {
        guard logins.search.situation.beginRound() else {
            let text = "\(chain.server.text) closed too many connections without a response; fetch aborted"
            return fail(FetchFailure(.connectionLost, text), &context)
        }
        bodyState = .spent
        return transfer(&context)
    }

    mutating func supplied(_ body: RequestBody?, _ context: inout FetchContext) -> FetchStep {
        guard let body else {
            let text =
                "the request to \(chain.server.text) must be sent again, but the client did not send the body again when asked (fetch/needBody)"
            return fail(FetchFailure(.bodyNotReplayable, text), &context)
        }
        logins.search.situation.chain.supply(body)
        bodyState = .untouched
        return transfer(&context)
    }
}
