public import WatchwordProtocol

/// The client's options for each exchange of its fetch.
public struct TransferOptions: Sendable, Equatable {
    /// The lower-case names of default header fields to omit.
    public var omittedHeaders: Set<String> = []
    /// The time limit for name resolution and connecting; `nil` for the adapter's default.
    public var connectTimeout: Duration?
    /// The maximum size of the decoded body; a larger one fails with `TransferFailure.Kind.bodyTooLarge`.
    public var maxBodyBytes: Int
    public var delivery = BodyDelivery.whole
    /// With the delivery `fromHeader`: whether the response is delivered a moment after its header, so that a small body is
    /// delivered with it, and a failure right behind the header is the outcome.
    public var awaitsBody = false
    /// Whether the exchange fails with `connectionLost` rather than open a connection: the login of a program belongs to one that
    /// was opened before.
    public var needsOldConnection = false
    /// Whether to open a tunnel to the origin instead of sending a request, through CONNECT if there is an HTTP proxy
    /// (RFC 9110 section 9.3.6). The response has status 200 and an `openBody`, which `TransferPort.takeTunnel` takes.
    public var opensTunnel = false
    /// Whether the request asks to switch to another protocol (RFC 9110 section 7.8). After status 101 the streamed bodies of
    /// request and response are its bytes, without framing and without a time limit between them.
    public var switchesProtocol = false
    /// Whether to request a content coding and decode it (RFC 9110 section 8.4).
    public var decompresses = false
    /// Whether cookies that are set by a challenge or redirect are sent with the following requests of the fetch.
    public var keepsCookies = true
    /// The maximum rate of each body; `nil` for no limit.
    public var maxBytesPerSecond: Int?
    /// The minimum rate, below which the exchange fails with `timedOut`; `nil` for no limit.
    public var lowSpeed: LowSpeed?

    public init(maxBodyBytes: Int = Limits.bodyBytes) { self.maxBodyBytes = maxBodyBytes }

    /// - Parameter inSteps: whether the response is delivered as soon as its header has been received.
    init(_ params: borrowing FetchRunParams, inSteps: Bool) throws(FetchFailure) {
        omittedHeaders = try HeaderPolicy.checkedOmissions(params.omitHeaders)
        connectTimeout = params.connectTimeoutMs.map { .milliseconds($0) }
        maxBodyBytes = params.maxBodyBytes ?? Limits.bodyBytes
        delivery = inSteps ? .fromHeader : .beyond(params.maxInlineBodyBytes)
        decompresses = params.decompress
        keepsCookies = params.cookies == .fetch
        maxBytesPerSecond = params.maxBytesPerSecond
        lowSpeed = params.lowSpeed
    }
}
