import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Programs that log in with one password, which is changed at the server at some moment, in virtual time.
private struct LoginSimulation {
    enum Event {
        case arrival(loops: Bool)
        case poll
        case respond(fetch: Int)
        case timer(fetch: Int)
    }

    /// How long each request takes. The server checks the password when the request arrives.
    let latency: (Int) -> Duration
    let changedAt: Duration?
    private let credential = WatchwordCoreTests.login("bob", "old")
    private var attempts = InFlightAttempts()
    /// The next event is the last one.
    private var events: [(time: Duration, event: Event)] = []
    private var now = Duration.zero
    private var provenAt: Duration?
    private var fetches = 0
    private var looping: Set<Int> = []
    /// When each request was sent.
    private var sentAt: [Int: Duration] = [:]
    private var pollPeriod: Duration?
    private(set) var failed = 0
    private(set) var mostUnproven = 0
    private(set) var succeeded = 0
    private(set) var isRefused = false
    private(set) var finishedAt = Duration.zero

    init(changedAt: Duration?, latency: @escaping (Int) -> Duration) {
        (self.changedAt, self.latency) = (changedAt, latency)
    }

    private var login: InFlightAttempts.Login {
        InFlightAttempts.Login(credential: credential, space: Self.space, steering: nil, provenAt: provenAt)
    }

    private static let space = ProtectionSpace(
        scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)

    mutating func add(_ event: Event, at time: Duration) {
        // Events of one time happen in the order in which they were added.
        var (low, high) = (0, events.count)
        while low < high {
            let middle = (low + high) / 2
            if events[middle].time > time { low = middle + 1 } else { high = middle }
        }
        events.insert((time, event), at: low)
    }

    mutating func burst(_ count: Int, at time: Duration, loops: Bool = false) {
        for _ in 0..<count { add(.arrival(loops: loops), at: time) }
    }

    mutating func poll(every period: Duration, from time: Duration) {
        pollPeriod = period
        add(.poll, at: time)
    }

    mutating func run(until end: Duration) {
        while let (time, event) = events.last, time <= end {
            events.removeLast()
            now = time
            handle(event)
        }
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .poll:
            if let pollPeriod, !isRefused { add(.poll, at: now + pollPeriod) }
            start(loops: false)
        case .arrival(let loops): start(loops: loops)
        case .timer(let fetch):
            guard sentAt[fetch] == nil, !isRefused, let due = attempts.nextTry(of: FetchID(number: fetch)), now >= due
            else { return }
            attempts.leave(FetchID(number: fetch))
            begin(fetch)
        case .respond(let fetch): respond(fetch)
        }
    }

    private mutating func start(loops: Bool) {
        // After a refusal, the programs ask for the new password.
        if isRefused { return }
        fetches += 1
        if loops { looping.insert(fetches) }
        begin(fetches)
    }

    private mutating func begin(_ fetch: Int) {
        if attempts.begin(login, by: FetchID(number: fetch), now: now) { return send(fetch) }
        if let due = attempts.nextTry(of: FetchID(number: fetch)) { add(.timer(fetch: fetch), at: max(due, now)) }
    }

    private mutating func send(_ fetch: Int) {
        sentAt[fetch] = now
        if let changedAt, now >= changedAt { failed += 1 }
        add(.respond(fetch: fetch), at: now + latency(fetch))
    }

    private mutating func respond(_ fetch: Int) {
        let sent = sentAt[fetch] ?? now
        let isWrong = changedAt.map { sent >= $0 } ?? false
        let woken = attempts.end(
            by: FetchID(number: fetch), in: Self.space, isWrong ? .refused : .accepted(most: 64), now: now)
        finishedAt = now
        if isWrong {
            isRefused = true
            return
        }
        succeeded += 1
        provenAt = max(provenAt ?? sent, sent)
        for one in woken where !isRefused { send(one.fetch.number) }
        if looping.contains(fetch) { start(loops: true) }
    }
}

/// How many requests with one password may be without a verdict: SEMANTICS rule 22.
@Suite struct AttemptWindowTests {
    private static let latencies: [Duration] = [
        .milliseconds(1), .milliseconds(30), .milliseconds(400), .seconds(3), .seconds(25),
    ]

    /// The bursts begin after the change: a hundred programs, or a window that has grown to its limit, change nothing.
    @Test(
        "Rule 22: after a password was changed, at most three logins fail for programs that begin then",
        arguments: latencies, [20, 50, 256])
    func atMostThreeFail(latency: Duration, programs: Int) {
        // Polls that overlap are programs that run at the time of the change: see below.
        for period in [nil, Duration.milliseconds(100), .seconds(2)] where period.map({ $0 > latency }) ?? true {
            // The large bursts take long to simulate.
            for warm in programs == 20 ? [0, 16, 256] : [16] {
                // All requests of the first programs have their verdicts before the change.
                var before = LoginSimulation(changedAt: nil) { _ in latency }
                before.burst(1, at: .zero)
                before.burst(warm, at: latency)
                before.run(until: .seconds(3600))
                for pause in [
                    Limits.pauseBetweenRequests * 2, .milliseconds(100), .milliseconds(1999),
                    .seconds(2), .seconds(60),
                ] {
                    let changedAt = before.finishedAt + pause
                    var run = LoginSimulation(changedAt: changedAt) { _ in latency }
                    run.burst(1, at: .zero)
                    run.burst(warm, at: latency)
                    if let period { run.poll(every: period, from: before.finishedAt) }
                    run.burst(programs, at: changedAt)
                    run.run(until: changedAt + .seconds(600))
                    #expect(run.isRefused)
                    #expect(run.failed <= 3, "\(latency) \(programs) \(String(describing: period)) \(warm) \(pause)")
                    if period == nil, pause >= Limits.acceptanceAge, latency < Limits.knownVerdictWait {
                        #expect(run.failed == 1)
                    }
                }
            }
        }
    }

    /// Those that the running programs send until the first refusal arrives are no more than run at once.
    @Test(
        "Rule 22: a change in the middle of a burst fails at most one login for each running program",
        arguments: latencies)
    func aChangeInTheMiddleOfABurst(latency: Duration) {
        for programs in [16, 50, 256] {
            for step in stride(from: 0, through: 40, by: programs == 16 ? 1 : 8) {
                let changedAt = latency + latency * step / 5
                var run = LoginSimulation(changedAt: changedAt) { fetch in latency + .microseconds(fetch * 37 % 400) }
                run.burst(1, at: .zero)
                run.burst(programs, at: latency + .milliseconds(1), loops: true)
                run.run(until: changedAt + latency * 3)
                #expect(run.failed <= min(programs, Limits.requestsWithOneLogin * 2), "\(latency) \(programs) \(step)")
            }
        }
    }

    @Test("Rule 22: many parallel fetches that succeed are not slowed down", arguments: [16, 256])
    func manyThatSucceedAreNotSlowedDown(programs: Int) {
        for latency in Self.latencies.dropLast() {
            let jitter = { (fetch: Int) in latency + latency * (fetch * 37 % 100) / 300 }
            var run = LoginSimulation(changedAt: nil, latency: jitter)
            run.burst(1, at: .zero)
            run.burst(programs, at: jitter(1), loops: true)
            run.run(until: latency * 40)
            let unthrottled = 40 / 1.17 * Double(min(programs, Limits.requestsWithOneLogin))
            #expect(Double(run.succeeded) > 0.9 * unthrottled, "\(latency): \(run.succeeded) of \(unthrottled)")
        }
    }

    @Test("Rule 22: a slow page delays another fetch for two seconds, five before the first acceptance")
    func aSlowPageDelaysAnotherFetch() {
        for (isKnown, wait) in [(true, Limits.knownVerdictWait), (false, Limits.verdictWait)] {
            var run = LoginSimulation(changedAt: nil) { fetch in
                isKnown && fetch == 1 || fetch > 2 ? .milliseconds(1) : .seconds(25)
            }
            var begin = Duration.zero
            if isKnown {
                run.burst(1, at: .zero)
                begin = .seconds(10)
            } else {
                run.burst(1, at: .zero)
                run.run(until: .seconds(100))
                run = LoginSimulation(changedAt: nil) { fetch in fetch == 1 ? .seconds(25) : .milliseconds(1) }
            }
            run.burst(1, at: begin)
            run.burst(5, at: begin + .milliseconds(1))
            run.run(until: begin + wait - .milliseconds(1))
            #expect(run.succeeded == (isKnown ? 1 : 0))
            run.run(until: begin + wait + .seconds(1))
            #expect(run.succeeded == (isKnown ? 1 : 0) + 5)
        }
    }

    // MARK: The window itself

    @Test("Rule 22: a pause or the end of a burst closes the window")
    func aPauseClosesTheWindow() {
        var window = AttemptWindow()
        for fetch in 1...40 {
            window.send(FetchID(number: fetch), now: .milliseconds(fetch))
            if fetch > 8 {
                window.accept(
                    FetchID(number: fetch - 8), waiting: 20, since: .zero, most: 64, now: .milliseconds(fetch))
            }
        }
        #expect(window.permits(.new, others: .none, now: .milliseconds(44)))
        #expect(!window.permits(.new, others: .none, now: .milliseconds(50)), "most of the window is not used")
        #expect(!window.permits(.new, others: .none, now: .milliseconds(91)))
        for fetch in 33...40 {
            window.accept(FetchID(number: fetch), waiting: 0, since: .zero, most: 64, now: .milliseconds(92))
        }
        for fetch in 41...43 {
            #expect(window.permits(.new, others: .none, now: .milliseconds(93)))
            window.send(FetchID(number: fetch), now: .milliseconds(93))
        }
        #expect(!window.permits(.new, others: .none, now: .milliseconds(93)))
    }

    @Test("Rule D13: after the refusal of a remembered nonce, one request at a time tries the new one")
    func afterTheRefusalOfANonceOneTries() {
        var window = AttemptWindow()
        window.note(provenAt: .zero)
        for fetch in 1...3 { window.send(FetchID(number: fetch), now: .zero) }
        window.doubt(FetchID(number: 1), now: .zero)
        #expect(window.permits(.new, others: .none, now: .zero))
        window.send(FetchID(number: 1), now: .zero)
        window.doubt(FetchID(number: 2), now: .zero)
        #expect(!window.permits(.new, others: .none, now: .seconds(9)), "four have been sent")
        window.accept(FetchID(number: 1), waiting: 1, since: .zero, most: 64, now: .zero)
        #expect(window.atRisk == 0)
        #expect(window.permits(.new, others: .none, now: .zero))
    }
}

extension FetchID {
    /// A fetch that has sent nothing.
    fileprivate static let new = FetchID(number: 9999)
}

@Suite struct AttemptWindowMemoryTests {
    @Test func requestsThatProveNothingAreForgottenAtTheNextAcceptance() {
        var window = AttemptWindow()
        window.note(provenAt: .zero)
        let fetches = (1...3).map { FetchID(number: $0) }
        for fetch in fetches { window.send(fetch, now: .seconds(1)) }
        func accept(_ fetch: FetchID) { window.accept(fetch, waiting: 0, since: .zero, most: 64, now: .seconds(2)) }
        accept(fetches[2])
        window.lose(fetches[1], now: .seconds(2))
        #expect(!window.isIdle && window.atRisk == 0)
        accept(fetches[0])
        #expect(window.isIdle)
    }
}
