import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct RepeatedEventsTests {
    private let client = AuditEvent.Client(name: "a", pid: 1, uid: 1, executable: nil)

    private func note(
        _ kind: AuditEvent.Kind = .credentialUsed, host: ExactText = "h", user: ExactText? = "bob", fetch: Int = 1
    ) throws -> AuditNote {
        let space = ProtectionSpace(scheme: "http", host: host, port: 80, realm: "r", authenticationMethod: .httpBasic)
        return AuditNote(
            kind: kind, fetch: FetchID(number: fetch), origin: try FetchURL("http://\(host)/").origin,
            space: SpacePattern(space), user: user, source: .session, persistence: nil)
    }

    @Test func theSameWithinAMinuteIsToldOnce() throws {
        var uses = RepeatedEvents()
        #expect(uses.count(try note(), by: client, now: .zero) == 1)
        for fetch in 2...100 { #expect(uses.count(try note(fetch: fetch), by: client, now: .seconds(59)) == nil) }
        #expect(uses.count(try note(), by: client, now: .seconds(60)) == 100)
        #expect(uses.count(try note(), by: client, now: .seconds(119)) == nil)
    }

    @Test func whatDiffersIsToldApart() throws {
        var uses = RepeatedEvents()
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

    @Test func aRefusalMakesTheNextUseNews() throws {
        var uses = RepeatedEvents()
        for _ in 0..<3 {
            #expect(uses.count(try note(), by: client, now: .zero) == 1)
            #expect(uses.count(try note(.credentialRefused), by: client, now: .zero) == 1)
        }
    }

    @Test func itRemembersSoManyAndNoMore() throws {
        var uses = RepeatedEvents()
        for number in 0..<300 { #expect(uses.count(try note(host: "h\(number)"), by: client, now: .zero) == 1) }
        #expect(uses.count(try note(host: "h299"), by: client, now: .zero) == nil)
        #expect(uses.count(try note(host: "h0"), by: client, now: .zero) == 1)
    }

    private func denial(_ host: ExactText, _ kind: AuditEvent.Kind = .denied) -> AuditEvent {
        var event = AuditEvent(kind, timeMs: 0, client: client)
        event.origin = host.string
        return event
    }

    @Test(arguments: [AuditEvent.Kind.denied, .challengeAsked, .challengeAnswered])
    func theSameQuestionOrDenialIsToldOnce(kind: AuditEvent.Kind) {
        var events = RepeatedEvents()
        #expect(events.count(denial("h", kind), now: .zero) == 1)
        for _ in 0..<1000 { #expect(events.count(denial("h", kind), now: .seconds(59)) == nil) }
        #expect(events.count(denial("other", kind), now: .seconds(59)) == 1)
        #expect(events.count(denial("h", kind), now: .seconds(60)) == 1001)
    }

    @Test func theQuestionAfterARefusalIsAnother() {
        var events = RepeatedEvents()
        #expect(events.count(denial("h", .challengeAsked), now: .zero) == 1)
        #expect(events.count(denial("h", .challengeAsked), after: 1, now: .zero) == 1)
        #expect(events.count(denial("h", .challengeAsked), after: 1, now: .zero) == nil)
    }

    @Test func whatChangesSomethingIsToldEachTime() {
        var events = RepeatedEvents()
        for kind in [AuditEvent.Kind.locked, .credentialStored, .trustAccepted, .sessionCleared] {
            for _ in 0..<3 { #expect(events.count(denial("h", kind), now: .zero) == 1) }
        }
    }

    @Test func oneClientsManyDenialsAreFew() {
        var events = RepeatedEvents()
        let told = (0..<1000).filter { events.count(denial("h\($0)"), now: .zero) != nil }
        #expect(told.count == RepeatedEvents.differentOfOneClient + 1)
        var other = denial("h999")
        other.client?.pid = 2
        #expect(events.count(other, now: .zero) == 1, "another client's are told")
    }
}
