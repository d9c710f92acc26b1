public import WatchwordProtocol

/// What a client wants of each exchange of its fetch: one value from its message to the transfer.
public struct TransferOptions: Sendable, Equatable {
    /// Names, in lower case, of the fields that are not added to those of the request.
    public var omittedHeaders: Set<String> = []
    /// For the name and the connection; `nil` for the adapter's own limit.
    public var connectTimeout: Duration?
    /// A larger response, after decoding, ends the exchange with `TransferFailure.Kind.bodyTooLarge`.
    public var maxBodyBytes: Int
    public var delivery = BodyDelivery.whole
    /// Asks for a content coding, and undoes it (RFC 9110 section 8.4).
    public var decompresses = false
    /// Of either body; `nil` for no limit.
    public var maxBytesPerSecond: Int?
    /// Slower than that ends the exchange with `timedOut`; `nil` for no limit.
    public var lowSpeed: LowSpeed?

    public init(maxBodyBytes: Int = Limits.bodyBytes) { self.maxBodyBytes = maxBodyBytes }

    /// - Parameter inSteps: the response is wanted as soon as it begins.
    init(_ params: FetchRunParams, inSteps: Bool) throws(FetchFailure) {
        omittedHeaders = try HeaderPolicy.checkedOmissions(params.omitHeaders)
        connectTimeout = params.connectTimeoutMs.map { .milliseconds($0) }
        maxBodyBytes = params.maxBodyBytes ?? Limits.bodyBytes
        delivery = inSteps ? .fromHeader : .beyond(params.maxInlineBodyBytes)
        decompresses = params.decompress
        maxBytesPerSecond = params.maxBytesPerSecond
        lowSpeed = params.lowSpeed
    }
}
