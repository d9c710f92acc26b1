import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct AuditEventFilterTests {
    private let client = AuditEvent.Client(name: "a", pid: 1, uid: 1, executable: nil)

    private func note(
        _ kind: AuditEvent.Kind = .credentialUsed, host: ExactText = "h", user: ExactText? = "bob"
    ) throws -> AuditRecord {
        let space = ProtectionSpace(scheme: "http", host: host, port: 80, realm: "r", authenticationMethod: .httpBasic)
        return AuditRecord(
            kind: kind, origin: try FetchURL("http://\(host)/").origin,
            space: SpacePattern(space), user: user, source: .session, persistence: nil)
    }

    @Test func repeatedUsesWithinAMinuteAreRecordedOnce() throws {
        var uses = AuditEventFilter()
        #expect(uses.count(try note(), by: client, now: .zero) == 1)
        for _ in 2...100 { #expect(uses.count(try note(), by: client, now: .seconds(59)) == nil) }
        #expect(uses.count(try note(), by: client, now: .seconds(60)) == 100)
        #expect(uses.count(try note(), by: client, now: .seconds(119)) == nil)
    }

    @Test func differentEventsAreCountedSeparately() throws {
        var uses = AuditEventFilter()
        var other = client
        other.pid = 2
        #expect(uses.count(try note(), by: client, now: .zero) == 1)
        #expect(uses.count(try note(), by: other, now: .zero) == 1)
        #expect(uses.count(try note(), by: nil, now: .zero) == 1)
        #expect(uses.count(try note(host: "other"), by: client, now: .zero) == 1)
        #expect(uses.count(try note(user: "carol"), by: client, now: .zero) == 1)
        #expect(uses.count(try note(.certificateUsed), by: client, now: .zero) == 1)
        for _ in 0..<2 { #expect(uses.count(try note(.credentialRefused), by: client, now: .zero) == 1) }
    }

    @Test func aProxyLoginForAnotherSchemeIsAnotherUse() throws {
        var uses = AuditEventFilter()
        for scheme in ["http", "https"] {
            let record = AuditRecord(
                kind: .credentialUsed, origin: try FetchURL("\(scheme)://h:8080/").origin,
                space: SpacePattern(
                    ProtectionSpace(
                        scheme: "http", host: "p", port: 3128, realm: "r", authenticationMethod: .httpBasic,
                        proxyType: .http)), user: "bob", source: .session, persistence: nil)
            #expect(uses.count(record, by: client, now: .zero) == 1)
            #expect(uses.count(record, by: client, now: .zero) == nil)
        }
    }

    @Test func repeatedPromptsOfOneProgramAreRecordedOnce() {
        var events = AuditEventFilter()
        var event = AuditEvent(.promptAsked, timeMs: 0, client: client)
        event.program = "ssh"
        #expect(events.count(event, now: .zero) == 1)
        for second in 1...59 { #expect(events.count(event, now: .seconds(second)) == nil) }
        #expect(events.count(event, now: .seconds(60)) == 60)
        event.program = "sudo"
        #expect(events.count(event, now: .seconds(60)) == 1)
        // A program can name any number of callers.
        let counts = (0..<1000).map { number in
            event.program = "p\(number)"
            return events.count(event, now: .seconds(61))
        }
        #expect(counts.count { $0 != nil } <= AuditEventFilter.maxDistinctPerClient)
    }

    /// A restricted front promises a record of each request that it accepts.
    @Test func repeatedRefusalsOfAFrontAreRecordedOnce() {
        var events = AuditEventFilter()
        var event = AuditEvent(.frontRequest, timeMs: 0, client: client)
        (event.action, event.origin) = ("GET", "http://h")
        for _ in 0..<3 { #expect(events.count(event, now: .zero) == 1) }
        event.reason = "denied"
        #expect(events.count(event, now: .zero) == 1)
        for _ in 0..<3 { #expect(events.count(event, now: .seconds(59)) == nil) }
        event.action = "PUT"
        #expect(events.count(event, now: .seconds(59)) == 1)
    }

    @Test func aUseAfterARefusalIsRecorded() throws {
        var uses = AuditEventFilter()
        for _ in 0..<3 {
            #expect(uses.count(try note(), by: client, now: .zero) == 1)
            #expect(uses.count(try note(.credentialRefused), by: client, now: .zero) == 1)
        }
    }

    @Test func theTableIsBounded() throws {
        var uses = AuditEventFilter()
        for number in 0..<300 { #expect(uses.count(try note(host: "h\(number)"), by: client, now: .zero) == 1) }
        #expect(uses.count(try note(host: "h299"), by: client, now: .zero) == nil)
        #expect(uses.count(try note(host: "h0"), by: client, now: .zero) == 1)
    }

    private func denial(_ host: ExactText, _ kind: AuditEvent.Kind = .denied) -> AuditEvent {
        var event = AuditEvent(kind, timeMs: 0, client: client)
        event.origin = host.string
        return event
    }

    /// Returns how many events the records stand for that are made when each of these hosts is denied `times` times.
    private func counted(_ hosts: Range<Int>, times: Int = 1, at second: Int, _ events: inout AuditEventFilter) -> Int {
        var sum = 0
        for host in hosts {
            for _ in 0..<times { sum += events.count(denial("h\(host)"), now: .seconds(second)) ?? 0 }
        }
        return sum
    }

    @Test func aFloodIsCountedCompletelyInTheNextMinute() {
        var events = AuditEventFilter()
        #expect(counted(0..<500, at: 0, &events) == 33)
        for minute in 1...5 { #expect(counted(0..<500, at: 61 * minute, &events) == 500) }
    }

    @Test func whatWasSuppressedIsCountedWhenItsEventIsForgotten() {
        var events = AuditEventFilter()
        #expect(counted(0..<32, times: 10, at: 0, &events) == 32)
        #expect(counted(100..<132, times: 10, at: 61, &events) == 32)
        // 32 new events need the places of the first ones, whose 288 repetitions are counted with the event beyond them.
        #expect(counted(200..<233, at: 122, &events) == 32 + 1 + 288 + 288)
    }

    @Test(arguments: [AuditEvent.Kind.denied, .challengeAsked, .challengeAnswered])
    func repeatedQuestionsAndDenialsAreRecordedOnce(kind: AuditEvent.Kind) {
        var events = AuditEventFilter()
        #expect(events.count(denial("h", kind), now: .zero) == 1)
        for _ in 0..<1000 { #expect(events.count(denial("h", kind), now: .seconds(59)) == nil) }
        #expect(events.count(denial("other", kind), now: .seconds(59)) == 1)
        #expect(events.count(denial("h", kind), now: .seconds(60)) == 1001)
    }

    @Test func aQuestionAfterARefusalIsRecorded() {
        var events = AuditEventFilter()
        #expect(events.count(denial("h", .challengeAsked), now: .zero) == 1)
        #expect(events.count(denial("h", .challengeAsked), after: 1, now: .zero) == 1)
        #expect(events.count(denial("h", .challengeAsked), after: 1, now: .zero) == nil)
    }

    @Test func eventsThatChangeStateAreAlwaysRecorded() {
        var events = AuditEventFilter()
        for kind in [AuditEvent.Kind.locked, .credentialStored, .trustAccepted, .sessionCleared] {
            for _ in 0..<3 { #expect(events.count(denial("h", kind), now: .zero) == 1) }
        }
    }

    @Test func distinctDenialsOfOneClientAreLimited() {
        var events = AuditEventFilter()
        let told = (0..<1000).filter { events.count(denial("h\($0)"), now: .zero) != nil }
        #expect(told.count == AuditEventFilter.maxDistinctPerClient + 1)
        var other = denial("h999")
        other.client?.pid = 2
        #expect(events.count(other, now: .zero) == 1, "events of another client are recorded")
        #expect(events.count(denial("later"), now: .seconds(61)) == 1, "events of the previous minute do not count")
        #expect(events.count(denial("latest"), now: .seconds(61)) == 1, "events of the previous minute do not count")
    }

    /// Far more clients than the table holds.
    @Test func theClientsAreBounded() {
        var events = AuditEventFilter()
        for pid in 0..<1000 {
            var event = denial("h")
            event.client?.pid = pid
            #expect(events.count(event, now: .zero) == 1)
            #expect(events.count(event, now: .zero) == nil)
        }
    }

    /// Entries that have expired are still in the table.
    @Test func repeatedDenialsOfEarlierMinutesAreLimited() {
        var events = AuditEventFilter()
        for minute in 0..<4 {
            for host in 0..<32 { _ = events.count(denial("h\(32 * minute + host)"), now: .seconds(61 * minute)) }
        }
        let told = (0..<128).filter { events.count(denial("h\($0)"), now: .seconds(61 * 4)) != nil }
        #expect(told.count <= AuditEventFilter.maxDistinctPerClient + 1)
    }
}
