import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The upstreams of a server by exceptions, rules, PAC file and the proxy for all servers.
@Suite struct ProxyRuleTests {
    private let other = ProxyEndpoint(type: .http, host: "q", port: 3128)

    private func origin(_ text: String) throws -> Origin { try FetchURL(text).origin }

    private func rule(found: FoundUpstreams? = nil, endpoint: ProxyEndpoint? = wayOut) throws -> ProxyRule {
        ProxyRule(
            endpoint: endpoint, exceptions: [try HostPattern("x.a.test")],
            rules: [
                UpstreamRule(hosts: [try HostPattern("*.a.test")], upstreams: [.proxy(other), .direct]),
                UpstreamRule(hosts: [try HostPattern(".a.test")], upstreams: [.direct]),
            ], found: found)
    }

    @Test func theFirstThatMatchesApplies() throws {
        let expected: [(String, [Upstream])] = [
            ("http://x.a.test/", [.direct]), ("http://y.a.test/", [.proxy(other), .direct]),
            ("https://a.test/", [.direct]), ("http://b.test/", [.proxy(wayOut)]),
        ]
        for (url, upstreams) in expected {
            #expect(try rule().choice(for: origin(url), now: .zero) == .upstreams(upstreams), "\(url)")
        }
        let alone = ProxyRule().choice(for: try origin("http://b.test/"), now: .zero)
        #expect(alone == .upstreams([.direct]))
    }

    @Test func aResultIsNeededOnceItHasExpired() throws {
        let server = try origin("http://b.test/")
        #expect(try rule(found: FoundUpstreams()).choice(for: server, now: .zero) == .unknown)
        var found = FoundUpstreams()
        found.record(.success([.proxy(other)]), for: server, now: .zero)
        #expect(try rule(found: found).choice(for: server, now: .seconds(59)) == .upstreams([.proxy(other)]))
        #expect(try rule(found: found).choice(for: server, now: .seconds(60)) == .unknown)
        #expect(try rule(found: found).choice(for: origin("https://b.test/"), now: .zero) == .unknown)
        #expect(try rule(found: found).choice(for: origin("http://a.test/"), now: .zero) == .upstreams([.direct]))
    }

    @Test func aFailureIsNeverDirect() throws {
        let server = try origin("http://b.test/")
        var found = FoundUpstreams()
        found.record(.failure(UpstreamFailure("broken")), for: server, now: .zero)
        #expect(try rule(found: found, endpoint: nil).choice(for: server, now: .zero) == .failed("broken"))
        #expect(try rule(found: found).choice(for: server, now: .zero) == .upstreams([.proxy(wayOut)]))
        #expect(try rule(found: found).choice(for: server, now: .seconds(5)) == .unknown)
    }

    @Test func tooManyEvaluationsDoNotLeadToTheProxyForFailures() throws {
        let server = try origin("http://b.test/")
        var found = FoundUpstreams()
        found.record(.failure(UpstreamFailure("busy", isBusy: true)), for: server, now: .zero)
        #expect(try rule(found: found).choice(for: server, now: .zero) == .failed("busy"))
        found.forget(server)
        #expect(try rule(found: found).choice(for: server, now: .zero) == .unknown)
    }

    @Test("Rule 24: a stored login for http is not sent through a proxy that others may have chosen")
    func aStoredLoginIsNotSentThroughAProxyOfAForgeableFile() throws {
        for (isForgeable, url, isConfigured) in [
            (true, "http://h/", false), (false, "http://h/", false), (true, "http://h/", true),
            (true, "https://h/", false),
        ] {
            var run = TableRun()
            let fetch = try run.fetch(url)
            run.challenge(fetch)
            run.answer(fetch, user: "bob", "pw")
            run.respond(fetch, 200)
            #expect(try run.first(url)?.authorization != nil)
            run.proxy.found = FoundUpstreams()
            run.proxy.found?.record(
                .success([.proxy(other)]), for: try origin(url), isForgeable: isForgeable, now: run.now)
            let rule = UpstreamRule(hosts: [try HostPattern("h")], upstreams: [.proxy(other)])
            if isConfigured { run.proxy.rules = [rule] }
            let isAsked = isForgeable && !isConfigured && url == "http://h/"
            let next = try run.fetch(url)
            #expect(run.last(next)?.proxy != nil && (run.last(next)?.authorization == nil) == isAsked, "\(url)")
            guard isAsked else { continue }
            run.challenge(next)
            #expect(run.question(next)?.proposedCredential == nil)
            run.proxy.found?.record(.success([.direct]), for: try origin(url), now: run.now)
            #expect(try run.first(url)?.authorization != nil, "without a proxy")
        }
    }

    @Test func theNumberOfResultsIsLimited() throws {
        var found = FoundUpstreams()
        for number in 0..<2000 {
            found.record(.success([.direct]), for: try origin("http://h\(number)/"), now: .zero)
        }
        let known = try (0..<2000).count { number in
            try ProxyRule(found: found).choice(for: origin("http://h\(number)/"), now: .zero) != .unknown
        }
        #expect((1...512).contains(known))
    }

    @Test func onlyConfiguredProxiesCountAsNamedByTheConfiguration() throws {
        let rule = try rule()
        #expect(try rule.names(other, for: origin("http://y.a.test/")))
        #expect(try !rule.names(other, for: origin("http://b.test/")))
        #expect(try rule.names(wayOut, for: origin("http://b.test/")))
        #expect(try !rule.names(wayOut, for: origin("http://x.a.test/")))
    }

    @Test func failedProxiesComeLastForATimeThatDoubles() throws {
        var health = UpstreamHealth()
        let all: [Upstream] = [.proxy(wayOut), .proxy(other), .direct]
        let later: [Upstream] = [.proxy(other), .direct, .proxy(wayOut)]
        health.recordFailure(of: wayOut, now: .zero)
        health.recordFailure(of: wayOut, now: .seconds(1))
        #expect(health.ordered(all, now: .seconds(59)) == later && health.failed(now: .seconds(59)) == [wayOut])
        #expect(health.ordered(all, now: .seconds(60)) == all && health.failed(now: .seconds(60)).isEmpty)
        health.recordFailure(of: wayOut, now: .seconds(60))
        #expect(health.ordered(all, now: .seconds(179)) == later && health.ordered(all, now: .seconds(180)) == all)
        var now = Duration.seconds(180)
        for _ in 0..<10 {
            health.recordFailure(of: wayOut, now: now)
            now += .seconds(1800)
            #expect(health.ordered(all, now: now) == all)
        }
        health.recordFailure(of: wayOut, now: now)
        health.recordSuccess(of: wayOut)
        #expect(health.ordered(all, now: now) == all)
        health.recordFailure(of: wayOut, now: now)
        #expect(health.ordered(all, now: now + .seconds(60)) == all)
    }

    @Test func theNumberOfFailedProxiesIsLimited() {
        var health = UpstreamHealth()
        for port in 1...200 {
            health.recordFailure(of: ProxyEndpoint(type: .http, host: "p", port: port), now: .seconds(port / 10))
        }
        #expect(health.failed(now: .seconds(20)).count == 64)
    }
}
