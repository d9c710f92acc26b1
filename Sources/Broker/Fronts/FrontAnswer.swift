internal import WatchwordCore

/// A request to a front that is being answered. Used on the broker's executor only.
final class FrontAnswer {
    let connection: ConnectionID
    let front: FrontID
    let link: any FrontLink
    let request: FrontRequest
    /// The fetch, until it has ended.
    var fetch: FetchID?
    /// The response whose body is being sent.
    var response: FrontResponse?
    /// The open body of the response.
    var body: OpenBody?
    /// Whether a read of the body is pending.
    var isReading = false
    /// Why the request cannot be answered, found while its body was received.
    var refusal: FrontRefusal?
    var proofs: [ResponseProof] = []
    /// The source of the bytes that the program sends in another protocol.
    var source: BodySourceID?
    /// The usage of the quota for open bodies.
    var share: Quota.Share?

    init(_ request: FrontRequest, _ link: any FrontLink, on connection: ConnectionID, at front: FrontID) {
        (self.request, self.link, self.connection, self.front) = (request, link, connection, front)
    }
}
