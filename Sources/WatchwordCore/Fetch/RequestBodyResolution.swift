internal import WatchwordProtocol

/// Decides whether a request body that is read from a socket can be sent: it may not be available a second time.
struct RequestBodyResolution: Sendable {
    private var state = RequestBodyState.untouched

    /// Whether the body has to be supplied again before it can be sent.
    var isSpent: Bool { state == .spent }

    mutating func record(_ state: RequestBodyState) { self.state = state }

    /// Returns the step that is needed before the body can be sent; `nil` if it can be sent now.
    func obstacle(_ outgoing: RequestLogins, _ hop: HopState) -> Resolution? {
        let chain = hop.chain
        guard case .stream? = chain.hop.body else { return nil }
        let sent = [outgoing.server, chain.isTunnel ? nil : outgoing.proxy].compactMap { $0 }
        if let covering = sent.first(where: { $0.challenge.digest?.protection == .authInt }) {
            let text =
                "\(covering.challenger.text) requires a login that covers the body (Digest with qop=auth-int), which the broker has not stored; send at most 64 KiB, without \"Expect: 100-continue\", or if you are a client of the broker, the body in the request"
            return .fail(FetchFailure(.notSupported, text))
        }
        guard isSpent else { return nil }
        guard hop.fetch.canResendBody else {
            let text =
                "the request to \(chain.server.text) must be sent again, but its body was not copied: it exceeded the quota for temporary files, or the disk is full; use a body that the client can send again (fetch/needBody), such as a file"
            return .fail(FetchFailure(.bodyNotReplayable, text))
        }
        return .needBody
    }

    /// Sends the request again after the connection was closed without a response. A part of the body was sent and is
    /// no longer available.
    mutating func sendAgain(_ hop: inout HopState) -> Resolution {
        guard hop.beginRound() else {
            let text = "\(hop.server.text) closed too many connections without a response; fetch aborted"
            return .fail(FetchFailure(.connectionLost, text))
        }
        state = .spent
        return .send
    }

    /// - Parameter body: the body that the client has sent again; `nil` if it has not.
    mutating func supplied(_ body: RequestBody?, _ hop: inout HopState) -> Resolution {
        guard let body else {
            let text =
                "the request to \(hop.server.text) must be sent again, but the client did not send the body again when asked (fetch/needBody)"
            return .fail(FetchFailure(.bodyNotReplayable, text))
        }
        hop.chain.supply(body)
        state = .untouched
        return .send
    }
}
