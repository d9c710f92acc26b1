/// The proxies that could not be reached lately. Until a failed proxy may be tried again, the other upstreams come
/// first.
struct UpstreamHealth: Sendable, Equatable {
    private struct Failure: Equatable {
        var delay: Duration
        var retry: Duration
    }

    /// The time until a failed proxy may be tried again, which doubles with each failure up to the longest.
    private static let shortestDelay = Duration.seconds(60)
    private static let longestDelay = Duration.seconds(1800)
    private static let largestCount = 64

    private var failures: [ProxyEndpoint: Failure] = [:]

    mutating func recordFailure(of endpoint: ProxyEndpoint, now: Duration) {
        let previous = failures[endpoint]
        // Fetches that have started before the first failure fail as well, and count once.
        if let previous, now < previous.retry { return }
        if previous == nil, failures.count >= Self.largestCount,
            let oldest = failures.min(by: { $0.value.retry < $1.value.retry })
        {
            failures[oldest.key] = nil
        }
        let delay = previous.map { min($0.delay * 2, Self.longestDelay) } ?? Self.shortestDelay
        failures[endpoint] = Failure(delay: delay, retry: now + delay)
    }

    mutating func recordSuccess(of endpoint: ProxyEndpoint) {
        guard !failures.isEmpty else { return }
        failures[endpoint] = nil
    }

    /// Returns the upstreams in the order in which they are tried: failed proxies come last.
    func ordered(_ upstreams: [Upstream], now: Duration) -> [Upstream] {
        guard !failures.isEmpty else { return upstreams }
        return upstreams.filter { !hasFailed($0, now) } + upstreams.filter { hasFailed($0, now) }
    }

    /// The proxies that are not tried first now, in the order of their names.
    func failed(now: Duration) -> [ProxyEndpoint] {
        failures.filter { now < $0.value.retry }.keys.sorted { $0.text < $1.text }
    }

    private func hasFailed(_ upstream: Upstream, _ now: Duration) -> Bool {
        upstream.endpoint.flatMap { failures[$0] }.map { now < $0.retry } ?? false
    }
}

extension FetchTable {
    /// The proxies that could not be reached lately, at the time of the last event.
    public var unreachableProxies: [ProxyEndpoint] { context.upstreams.failed(now: context.now) }
}
