import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct RetryTests {
    private let policy = RetryPolicy(limit: 3)

    private func pause(_ outcome: RetryPolicy.Outcome, _ retries: Int = 0, _ policy: RetryPolicy? = nil) -> Duration? {
        (policy ?? self.policy).pause(after: outcome, retries: retries, elapsed: .seconds(10), isRepeatable: true)
    }

    private func status(_ status: Int, after: Duration? = nil) -> RetryPolicy.Outcome {
        .response(status: status, retryAfter: after)
    }

    @Test func theStatusesAreCurls() {
        #expect((100...599).filter { pause(status($0)) != nil } == [408, 429, 500, 502, 503, 504])
    }

    @Test func theFailuresAreCurls() {
        let failures = ErrorKind.allCases.filter { pause(.failure($0)) != nil }
        #expect(Set(failures) == [.timedOut, .nameNotResolved])
        #expect(pause(.failure(.cannotConnect), 0, RetryPolicy(limit: 1, afterRefusedConnections: true)) != nil)
        let all = RetryPolicy(limit: 1, afterAnything: true)
        #expect(pause(.failure(.connectionLost), 0, all) != nil && pause(.failure(nil), 0, all) != nil)
        #expect(pause(.failure(.challengeCancelled), 0, all) == nil && pause(.failure(.cancelled), 0, all) == nil)
    }

    @Test func theTimesBetweenGrow() {
        #expect((0...3).map { pause(status(503), $0) } == [.seconds(1), .seconds(2), .seconds(4), nil])
        #expect(pause(status(503), 20, RetryPolicy(limit: 99)) == .seconds(600))
        #expect(pause(status(503), 2, RetryPolicy(limit: 3, delay: .seconds(5))) == .seconds(5))
        #expect(
            pause(status(503, after: .seconds(7))) == .seconds(7) && pause(status(503, after: .zero)) == .seconds(1))
    }

    @Test func theTotalTimeIsLimited() {
        #expect(pause(status(503), 0, RetryPolicy(limit: 3, longest: .seconds(11))) == .seconds(1))
        #expect(pause(status(503), 0, RetryPolicy(limit: 3, longest: .seconds(10))) == nil)
        #expect(pause(status(503, after: .seconds(9)), 0, RetryPolicy(limit: 3, longest: .seconds(12))) == nil)
    }

    @Test func unrepeatableRequestsAreNotRetried() {
        #expect(policy.pause(after: status(503), retries: 0, elapsed: .zero, isRepeatable: false) == nil)
    }

    @Test func readsRetryAfter() {
        #expect(HTTPDate.retryAfter("120", now: 0) == .seconds(120) && HTTPDate.retryAfter(nil, now: 0) == nil)
        #expect(HTTPDate.retryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now: 784_111_700) == .seconds(77))
        #expect(HTTPDate.retryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now: 784_111_800) == .zero)
        #expect(HTTPDate.retryAfter("soon", now: 0) == nil && HTTPDate.retryAfter("-1", now: 0) == nil)
        let year = Duration.seconds(365 * 86_400)
        #expect(HTTPDate.retryAfter("99999999", now: 0) == year)
        #expect(HTTPDate.retryAfter("Sun, 06 Nov 2050 08:49:37 GMT", now: 784_111_777) == year)
    }

    @Test(arguments: [
        ("http://h/a/b.txt?c/d#e/f", "b.txt"), ("http://h/a%20b", "a%20b"), ("h/x", "x"), ("http://h/", nil),
        ("http://h", nil), ("http://h/a/..", nil), ("http://h/.", nil), ("http://h/%2e%2e", "%2e%2e"),
        ("http://h?x/y", nil), ("http://h/a/.b", ".b"),
    ])
    func namesTheFileOfAURL(url: String, name: String?) { #expect(RemoteName.of(url) == name) }
}
