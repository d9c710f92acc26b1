import JSONText
import Testing
import WatchwordProtocol

@Suite struct AuditEventTests {
    @Test func everyMemberHasItsPlace() {
        var event = AuditEvent(
            .credentialUsed, timeMs: 1000,
            client: AuditEvent.Client(name: "mytool", pid: 4711, uid: 1000, executable: "/usr/bin/mytool"))
        event.fetchID = "f17"
        event.origin = "https://intranet.example"
        event.space = SpacePattern(
            scheme: "https", host: "intranet.example", port: 443, realm: "Staff", authenticationMethod: .httpDigest)
        event.user = "bob"
        event.source = .keyring
        let wanted: JSON = [
            "time": "1970-01-01T00:00:01.000Z", "kind": "credentialUsed",
            "client": ["name": "mytool", "pid": 4711, "uid": 1000, "executable": "/usr/bin/mytool"],
            "fetchId": "f17", "origin": "https://intranet.example",
            "protectionSpace": [
                "protocol": "https", "host": "intranet.example", "port": 443, "realm": "Staff",
                "authenticationMethod": "httpDigest", "isProxy": false,
            ], "user": "bob", "source": "keyring",
        ]
        #expect(event.json == wanted)
    }

    @Test func absentValuesHaveNoMember() {
        #expect(AuditEvent(.locked, timeMs: 0).json == ["time": "1970-01-01T00:00:00.000Z", "kind": "locked"])
    }

    /// Texts of servers and clients are shortened, and contain no line breaks and no control characters.
    @Test func textsFromOutsideAreShortAndHarmless() {
        let long = String(repeating: "\u{1F600}", count: 5000) + "\n\u{1B}[2J\u{202E}"
        let nasty = "\n\u{1B}[2J\u{202E}\u{9B}x" + long
        var event = AuditEvent(
            .challengeAnswered, timeMs: 0, client: AuditEvent.Client(name: nasty, pid: 1, uid: 1, executable: nasty))
        event.agent = event.client
        (event.fetchID, event.origin, event.user, event.action, event.by, event.reason) = (
            nasty, nasty, ExactText(nasty), nasty, nasty, nasty
        )
        event.space = SpacePattern(scheme: "https", host: ExactText(nasty), port: 443, realm: ExactText(nasty))
        let bytes = event.json.serialized()
        #expect(bytes.count < 10_000)
        let scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars
        #expect(
            !scalars.contains { $0.properties.generalCategory == .control || $0.properties.generalCategory == .format })
    }

    @Test func aSubscriptionNamesKinds() throws {
        #expect(try EventsSubscribe(nil).kinds == Set(AuditEvent.Kind.allCases))
        #expect(try EventsSubscribe(["kinds": ["locked", "denied"]]).kinds == [.locked, .denied])
        #expect(try EventsSubscribe(["kinds": []]).kinds.isEmpty)
        for wrong: JSON in [["kinds": ["odd"]], ["kinds": [1]], ["kinds": "locked"]] {
            #expect(throws: InvalidParams.self) { try EventsSubscribe(wrong) }
        }
    }
}
