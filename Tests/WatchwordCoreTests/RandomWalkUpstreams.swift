import WatchwordProtocol

@testable import WatchwordCore

/// The upstream proxies of the random walk.
extension RandomWalk {
    /// Returns rules with a list of upstreams for some hosts, and a PAC file for the others.
    static func upstreams(exceptions: [HostPattern], failover hosts: [HostPattern]) -> ProxyRule {
        let other = ProxyEndpoint(type: .http, host: "r", port: 3128)
        let rule = UpstreamRule(hosts: hosts, upstreams: [.proxy(wayOut), .proxy(other), .direct])
        return ProxyRule(endpoint: wayOut, exceptions: exceptions, rules: [rule], found: FoundUpstreams())
    }

    mutating func findUpstreams(of origin: Origin, for id: FetchID) {
        let isFound = chance(7, in: 8)
        proxy.found?.record(
            isFound ? .success([.proxy(wayOut)]) : .failure(UpstreamFailure("no script")), for: origin, now: now)
        take(table.handle(.foundUpstreams, of: id, environment), after: id)
    }

    mutating func unreachableProxy() -> TransferFailure {
        var failure = TransferFailure(.cannotConnect, "", cause: .proxyUnreachable)
        failure.hasSentRequest = chance(1, in: 4)
        return failure
    }
}
