/// The reason why the PAC file or the settings of the desktop name no upstream.
public struct UpstreamFailure: Error, Sendable, Equatable {
    /// The message: what happened, and what to do.
    public var text: String
    /// Whether only too many other evaluations are the reason, so that it says nothing about the file.
    public var isBusy: Bool

    public init(_ text: String, isBusy: Bool = false) { (self.text, self.isBusy) = (text, isBusy) }
}

/// The recent results of the PAC file or of the settings of the desktop, by origin. They expire, so that a changed
/// network takes effect, and no request has to wait for a result that is still valid.
public struct FoundUpstreams: Sendable, Equatable {
    public typealias Result = Swift.Result<[Upstream], UpstreamFailure>

    private struct Entry: Equatable {
        let result: Result
        /// Whether the PAC file was fetched by plain http, so that others could change it on its way.
        let isForgeable: Bool
        let expiry: Duration
    }

    private static let lifetime = Duration.seconds(60)
    private static let failureLifetime = Duration.seconds(5)
    private static let largestCount = 512

    private var entries: [Origin: Entry] = [:]

    public init() {}

    /// - Parameter isForgeable: whether the PAC file was fetched by plain http.
    public mutating func record(_ result: Result, for origin: Origin, isForgeable: Bool = false, now: Duration) {
        if entries.count >= Self.largestCount {
            entries = entries.filter { $0.value.expiry > now }
            if entries.count >= Self.largestCount { entries = [:] }
        }
        let isFailure = if case .failure = result { true } else { false }
        entries[origin] = Entry(
            result: result, isForgeable: isForgeable,
            expiry: now + (isFailure ? Self.failureLifetime : Self.lifetime))
    }

    func isForgeable(for origin: Origin) -> Bool { entries[origin]?.isForgeable == true }

    public mutating func forget(_ origin: Origin) { entries[origin] = nil }

    func result(for origin: Origin, now: Duration) -> Result? {
        guard let entry = entries[origin], now < entry.expiry else { return nil }
        return entry.result
    }
}
