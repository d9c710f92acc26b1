import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct RepeatedUsesTests {
    private let client = AuditEvent.Client(name: "a", pid: 1, uid: 1, executable: nil)

    private func note(
        _ kind: AuditEvent.Kind = .credentialUsed, host: String = "h", user: String? = "bob", fetch: Int = 1
    ) throws -> AuditNote {
        let space = ProtectionSpace(scheme: "http", host: host, port: 80, realm: "r", authenticationMethod: .httpBasic)
        return AuditNote(
            kind: kind, fetch: FetchID(number: fetch), origin: try FetchURL("http://\(host)/").origin,
            space: SpacePattern(space), user: user, source: .session, persistence: nil)
    }

    @Test func theSameWithinAMinuteIsToldOnce() throws {
        var uses = RepeatedUses()
        #expect(uses.count(try note(), by: client, now: .zero) == 1)
        for fetch in 2...100 { #expect(uses.count(try note(fetch: fetch), by: client, now: .seconds(59)) == nil) }
        #expect(uses.count(try note(), by: client, now: .seconds(60)) == 100)
        #expect(uses.count(try note(), by: client, now: .seconds(119)) == nil)
    }

    @Test func whatDiffersIsToldApart() throws {
        var uses = RepeatedUses()
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
        var uses = RepeatedUses()
        for _ in 0..<3 {
            #expect(uses.count(try note(), by: client, now: .zero) == 1)
            #expect(uses.count(try note(.credentialRefused), by: client, now: .zero) == 1)
        }
    }

    @Test func itRemembersSoManyAndNoMore() throws {
        var uses = RepeatedUses()
        for number in 0..<300 { #expect(uses.count(try note(host: "h\(number)"), by: client, now: .zero) == 1) }
        #expect(uses.count(try note(host: "h299"), by: client, now: .zero) == nil)
        #expect(uses.count(try note(host: "h0"), by: client, now: .zero) == 1)
    }
}
