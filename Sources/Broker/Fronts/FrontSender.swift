internal import WatchwordCore
internal import WatchwordProtocol

/// Sends the responses of fetches to the programs of fronts, as fast as the programs read.
final class FrontSender {
    /// The largest part of a body that is read at once, and the unsent output above which nothing is read.
    private static let partBytes = 64 << 10
    private static let highWaterMark = 256 << 10

    private let fetches: FetchRouter
    private let reference: DeskReference<FrontDesk>

    init(_ fetches: FetchRouter, _ reference: DeskReference<FrontDesk>) {
        (self.fetches, self.reference) = (fetches, reference)
    }

    private var transfers: any TransferPort { fetches.ports.transfers }

    /// Sends a response.
    /// - Parameters:
    ///   - keepsAlive: whether the program may use its connection again.
    ///   - finish: called when all of it is sent, with whether the connection stays open.
    func begin(
        _ answer: FrontAnswer, _ received: TransferResponse, _ headers: [HeaderField], _ body: OpenBody?,
        keepsAlive: Bool, finish: (Bool) -> Void
    ) {
        let announced = received.headers.firstValue(of: "Content-Length").flatMap { Int($0) }
        // The protocol that the origin has chosen among those of the request.
        let protocols = received.status == 101 ? received.headers.values(of: "Upgrade") : []
        let hasNoBody = answer.request.method == "HEAD" || received.status == 304
        // A body in chunks may be followed by trailers.
        let isChunked = received.headers.contains("Transfer-Encoding")
        let length =
            if hasNoBody { announced } else if let body { body.announcedBytes } else {
                isChunked ? nil : received.body.count
            }
        let response = FrontResponse(
            status: received.status, reason: received.reason,
            headers: headers + protocols.map { HeaderField("Upgrade", $0) }, length: length,
            to: answer.request, keepsAlive: keepsAlive)
        answer.response = response
        answer.link.send(response.bytes)
        if response.framing == .switched { answer.link.switchProtocol() }
        guard response.framing != .none, let body else {
            if let body { transfers.cancel(body.transfer) }
            if response.framing != .none { send(received.body, received.trailers, isAtEnd: true, to: answer, response) }
            return finish(response.keepsAlive)
        }
        answer.body = body
        if let quotas = fetches.clients[answer.connection]?.quotas {
            answer.share = Quota.Share(of: quotas.bodies)
            answer.share?.grow(by: 1)
        }
        let (id, transfer) = (answer.connection, body.transfer)
        transfers.follow(transfer, completion: reference.callback { $0.bodyEnded(transfer, $1, on: id) })
        pump(answer, finish: finish)
    }

    /// Reads the next part of the body, unless the program has to read first.
    func pump(_ answer: FrontAnswer, finish: (Bool) -> Void) {
        guard let body = answer.body, !answer.isReading, answer.link.waitingBytes < Self.highWaterMark else { return }
        answer.isReading = true
        let (id, transfer) = (answer.connection, body.transfer)
        transfers.read(
            transfer, maxBytes: Self.partBytes, completion: reference.callback { $0.hasRead(transfer, $1, on: id) })
    }

    func receive(_ result: Result<BodyPart, TransferFailure>, for answer: FrontAnswer, finish: (Bool) -> Void) {
        answer.isReading = false
        guard let response = answer.response, answer.body != nil else { return }
        switch result {
        case .failure:
            // The end of the connection is the only way to report it within a body. The program gets what was received before.
            answer.body = nil
            if response.framing == .closeDelimited { answer.link.abandon() } else { answer.link.close() }
        case .success(let part):
            send(part.bytes, part.trailers, isAtEnd: part.isAtEnd, to: answer, response)
            guard part.isAtEnd else { return pump(answer, finish: finish) }
            (answer.body, answer.share) = (nil, nil)
            fetches.perform(fetches.change { $0.recordEnd(of: answer.proofs) })
            finish(response.keepsAlive)
        }
    }

    /// Sends a part of a body in the framing of its response.
    private func send(
        _ part: [UInt8], _ trailers: HeaderBlock, isAtEnd: Bool, to answer: FrontAnswer, _ response: FrontResponse
    ) {
        guard response.framing == .chunked else { return answer.link.send(part) }
        answer.link.send(FrontResponse.chunk(part))
        guard isAtEnd else { return }
        answer.link.send(FrontResponse.lastChunk(trailers: FrontFields.trailers(trailers, to: answer.request)))
    }

    /// Ends the work for a connection that is closed.
    func drop(_ answer: FrontAnswer) {
        if let body = answer.body { transfers.cancel(body.transfer) }
        (answer.body, answer.share) = (nil, nil)
        releaseSource(of: answer)
    }

    func releaseSource(of answer: FrontAnswer) {
        if let source = answer.source.take() { transfers.release(source) }
    }
}
