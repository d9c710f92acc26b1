import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The next upstream after one that cannot be used.
@Suite struct FailoverTests {
    private let second = ProxyEndpoint(type: .http, host: "q", port: 3128)
    private let unreachable = TransferFailure(.cannotConnect, "unreachable", cause: .proxyUnreachable)

    private func run(_ upstreams: [Upstream]) throws -> TableRun {
        var run = TableRun()
        run.proxy = ProxyRule(rules: [UpstreamRule(hosts: [try HostPattern("h")], upstreams: upstreams)])
        return run
    }

    @Test func theNextUpstreamIsTried() throws {
        var run = try run([.proxy(wayOut), .proxy(second), .direct])
        let fetch = try run.fetch()
        #expect(run.last(fetch)?.proxy?.host == "p")
        #expect(run.last(fetch)?.options.connectTimeout == Limits.upstreamConnect)
        run.fail(fetch, unreachable)
        #expect(run.last(fetch)?.proxy?.host == "q")
        run.fail(fetch, unreachable)
        #expect(run.last(fetch)?.proxy == nil && run.requests[fetch]?.count == 3)
        #expect(run.last(fetch)?.options.connectTimeout == nil)
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.response.status == 200)
        #expect(run.table.unreachableProxies == [wayOut, second])
        // The failed proxies come last.
        let next = try run.fetch()
        #expect(run.last(next)?.proxy == nil)
        run.now += .seconds(61)
        let later = try run.fetch()
        #expect(run.last(later)?.proxy?.host == "p")
        run.respond(later, 200)
        #expect(run.table.unreachableProxies == [])
    }

    @Test func withoutAnotherUpstreamTheFetchFails() throws {
        var run = try run([.proxy(wayOut)])
        let fetch = try run.fetch()
        run.fail(fetch, unreachable)
        #expect(run.failures[fetch]?.kind == .proxyFailed)
        let next = try run.fetch()
        #expect(run.last(next)?.proxy?.host == "p")
    }

    @Test func otherFailuresDoNotLeadToTheNext() throws {
        var refused = TransferFailure(.tlsFailed, "untrusted", cause: .proxyTLSFailed)
        refused.serverTrust = ServerTrustFacts(chain: [], problems: [.selfSigned])
        let failures = [
            refused, TransferFailure(.cannotConnect, "refused", cause: .proxyRefused(status: 503)),
            TransferFailure(.connectionLost, "lost"), TransferFailure(.timedOut, "slow"),
            TransferFailure(.cannotConnect, "denied", cause: .addressDenied),
        ]
        for failure in failures {
            var run = try run([.proxy(wayOut), .proxy(second)])
            let fetch = try run.fetch()
            run.fail(fetch, failure)
            #expect(run.requests[fetch]?.count == 1 && run.failures[fetch] != nil, "\(failure.detail)")
            #expect(run.table.unreachableProxies == [])
        }
    }

    @Test func aProxyThatIsNoneLeadsToTheNext() throws {
        for cause in [TransferFailure.Cause.proxyRefused(status: nil), .proxyTLSFailed] {
            var run = try run([.proxy(wayOut), .proxy(second)])
            let fetch = try run.fetch("https://h/")
            run.fail(fetch, TransferFailure(.cannotConnect, "no proxy", cause: cause))
            #expect(run.last(fetch)?.proxy?.host == "q")
            #expect(run.table.unreachableProxies == (cause == .proxyTLSFailed ? [wayOut] : []))
        }
        // With SOCKS, the proxy may have refused the server.
        var run = try run([.proxy(ProxyEndpoint(type: .socks, host: "s", port: 1080)), .proxy(second)])
        let fetch = try run.fetch()
        run.fail(fetch, TransferFailure(.cannotConnect, "refused", cause: .proxyRefused(status: nil)))
        #expect(run.failures[fetch] != nil)
    }

    @Test func aProxyThatEndsTheConnectionForOneServerIsKeptForOthers() throws {
        var run = try run([.proxy(wayOut), .proxy(second), .direct])
        let blocked = try run.fetch("https://h/")
        run.fail(blocked, TransferFailure(.cannotConnect, "ended", cause: .proxyRefused(status: nil)))
        run.fail(blocked, TransferFailure(.timedOut, "no tunnel", cause: .proxyRefused(status: nil)))
        #expect(run.requests[blocked]?.count == 2 && run.failures[blocked]?.kind == .proxyFailed)
        let next = try run.fetch()
        #expect(run.last(next)?.proxy?.host == "p")
    }

    @Test func aServerThatCannotBeReachedDirectlyIsTriedThroughTheNext() throws {
        for kind in [TransferFailure.Kind.cannotConnect, .nameNotResolved] {
            var run = try run([.direct, .proxy(wayOut)])
            let fetch = try run.fetch()
            run.fail(fetch, TransferFailure(kind, "down"))
            #expect(run.last(fetch)?.proxy?.host == "p")
        }
    }

    @Test func aRequestThatMayHaveArrivedIsSentAgainOnlyIfItIsSafe() throws {
        var sent = unreachable
        sent.hasSentRequest = true
        for (method, isSentAgain) in [("GET", true), ("HEAD", true), ("POST", false), ("DELETE", false)] {
            var run = try run([.proxy(wayOut), .proxy(second)])
            let fetch = try run.fetch { $0.method = method }
            run.fail(fetch, sent)
            #expect((run.failures[fetch] == nil) == isSentAgain, "\(method)")
        }
        var run = try run([.proxy(wayOut), .proxy(second)])
        let fetch = try run.fetch { $0.method = "POST" }
        run.fail(fetch, unreachable)
        #expect(run.last(fetch)?.proxy?.host == "q")
        let tunnel = try run.fetch("https://h/") {
            $0.method = "POST"
        } adapt: {
            $0.options.opensTunnel = true
        }
        run.fail(tunnel, sent)
        #expect(run.requests[tunnel]?.count == 2)
    }

    @Test func aSpentBodyIsNotSentAgain() throws {
        var spent = unreachable
        spent.requestBody = .spent
        var run = try run([.proxy(wayOut), .proxy(second)])
        let fetch = try run.fetch {
            $0.method = "POST"
        } adapt: {
            $0.body = .stream(RequestStream(source: BodySourceID(value: 1), size: 5))
        }
        run.fail(fetch, spent)
        #expect(run.failures[fetch]?.kind == .proxyFailed)
    }

    @Test("Rules R15 and 23: a login for one proxy does not go to the next one")
    func aLoginForOneProxyDoesNotGoToTheNext() throws {
        var run = try run([.proxy(wayOut), .proxy(second)])
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        #expect(run.last(fetch)?.proxyLogin == basic("out", "pw"))
        run.fail(fetch, unreachable)
        #expect(run.last(fetch)?.proxy?.host == "q" && run.last(fetch)?.proxyLogin == nil)
        run.challengeFromProxy(fetch)
        #expect(run.question(fetch)?.protectionSpace.host == "q")
        run.answer(fetch, user: "out", "pw2")
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.proxyAuthentication?.user == "out")
    }

    @Test("Rules R15 and 23: a 407 asks for a login, and does not lead to the next proxy")
    func a407DoesNotLeadToTheNext() throws {
        var run = try run([.proxy(wayOut), .proxy(second)])
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        run.answer(fetch, .proceed)
        #expect(run.results[fetch]?.response.status == 407 && run.requests[fetch]?.count == 1)
    }

    @Test func aClientWithAShortTimeLimitDoesNotChangeTheChoiceOfOthers() throws {
        var run = try run([.proxy(wayOut), .proxy(second)])
        let fetch = try run.fetch { $0.connectTimeoutMs = 1 }
        run.fail(fetch, unreachable)
        #expect(run.last(fetch)?.proxy?.host == "q")
        let next = try run.fetch()
        #expect(run.last(next)?.proxy?.host == "p")
    }

    @Test func aNamedProxyHasNoAlternative() throws {
        var run = try run([.proxy(wayOut), .proxy(second)])
        let fetch = try run.fetch { $0.proxy = .named(NamedProxy(url: "http://p:3128", credential: nil)) }
        run.fail(fetch, unreachable)
        #expect(run.failures[fetch]?.kind == .proxyFailed)
        #expect(run.table.unreachableProxies == [], "a client must not change the choice for others")
    }

    // MARK: Unknown upstreams

    @Test func aFetchWaitsForTheUpstreams() throws {
        var run = TableRun()
        run.proxy.found = FoundUpstreams()
        let fetch = try run.fetch()
        #expect(run.pending[fetch] == .findUpstreams(try FetchURL("http://h/").origin))
        run.expire(fetch)
        #expect(run.requests[fetch] == nil)
        run.proxy.found?.record(.success([.proxy(second)]), for: try FetchURL("http://h/").origin, now: run.now)
        run.foundUpstreams(fetch)
        #expect(run.last(fetch)?.proxy?.host == "q")
        // Each hop of a redirect is looked up.
        run.respond(fetch, 302, ("Location", "http://other/"))
        #expect(run.pending[fetch] == .findUpstreams(try FetchURL("http://other/").origin))
        run.proxy.found?.record(
            .failure(UpstreamFailure("broken")), for: try FetchURL("http://other/").origin, now: run.now)
        run.foundUpstreams(fetch)
        #expect(run.failures[fetch] == FetchFailure(.proxyFailed, "broken"))
    }

    @Test func aFetchThatWaitsForUpstreamsCanBeAbortedAndTimesOut() throws {
        var run = TableRun()
        run.proxy.found = FoundUpstreams()
        let fetch = try run.fetch()
        run.abort([fetch])
        #expect(run.failures[fetch]?.kind == .cancelled)
        let late = try run.fetch { $0.timeoutMs = 100 }
        #expect(run.table.deadline(of: late) == run.now + .milliseconds(100))
        run.now += .milliseconds(100)
        run.expire(late)
        #expect(run.failures[late]?.kind == .timedOut)
    }
}
