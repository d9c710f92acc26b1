import JSONText
import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct LogTextTests {
    private let client = AuditEvent.Client(name: "report", pid: 4711, uid: 1000, executable: "/usr/bin/python3")
    private let desk = AuditEvent.Client(name: "desk", pid: 22, uid: 1000, executable: "/usr/bin/desk")

    private func line(_ kind: AuditEvent.Kind, _ change: (inout AuditEvent) -> Void = { _ in }) -> String {
        var event = AuditEvent(kind, timeMs: 0, client: client)
        event.origin = "https://intranet.example"
        event.space = SpacePattern(
            scheme: "https", host: "intranet.example", port: 443, realm: "Staff", authenticationMethod: .httpBasic)
        change(&event)
        let line = LogText.line(event.json)
        let time = "1970-01-01T00:00:00.000+00:00"
        #expect(LocalTime.milliseconds(String(line.prefix(time.utf8.count))) == 0)
        return String(line.dropFirst(time.utf8.count + 2))
    }

    @Test func everyKindHasAText() {
        for kind in AuditEvent.Kind.allCases { #expect(!line(kind).contains("unknown to this version"), "\(kind)") }
        #expect(
            LogText.line(["kind": "newer"]) == "?  the broker  caused an event unknown to this version: newer")
    }

    @Test func thePromptOfAProgramIsNamedByItsCallerAndTheAgent() {
        let asked = line(.promptAsked) { ($0.program, $0.agent) = ("ssh", desk) }
        #expect(asked == #"python3[4711] "report"  showed a prompt of "ssh" through desk[22]"#)
        let cancelled = line(.promptAnswered) { ($0.program, $0.agent, $0.action) = ("ssh", desk, "cancel") }
        #expect(
            cancelled == #"python3[4711] "report"  got the answer "cancel" to its prompt of "ssh", from desk[22]"#)
        let silent = line(.promptAnswered) { $0.reason = "disconnected" }
        #expect(silent == #"python3[4711] "report"  got no answer to its prompt: disconnected"#)
    }

    @Test func aLineNamesProgramActionSiteAndUser() {
        let used = line(.credentialUsed) { ($0.user, $0.source) = ("bob", .keyring) }
        #expect(
            used
                == #"python3[4711] "report"  used a login for https://intranet.example ("Staff", Basic) as bob, from the keyring"#
        )
        let proxy = line(.credentialRefused) { event in
            event.space = SpacePattern(
                scheme: "http", host: "proxy.example", port: 3128, authenticationMethod: .httpBasic, proxyType: .http)
        }
        #expect(
            proxy
                == #"python3[4711] "report"  was refused by the proxy http://proxy.example:3128 (Basic) on the way to https://intranet.example"#
        )
    }

    @Test func aLineNamesTheScriptOfAnInterpreter() {
        let used = line(.credentialUsed) { $0.client?.script = "/usr/bin/report.py" }
        #expect(used.hasPrefix(#"python3[4711] report.py "report"  used a login"#))
    }

    @Test func questionsAndAnswersNameTheirRespondent() {
        let site = #"https://intranet.example ("Staff", Basic)"#
        #expect(line(.challengeAsked) { $0.by = "client" } == #"python3[4711] "report"  was asked about \#(site)"#)
        let asked = line(.challengeAsked) { ($0.by, $0.agent) = ("agent", desk) }
        #expect(asked == #"python3[4711] "report"  caused a question to desk[22] about \#(site)"#)
        let answered = line(.challengeAnswered) { ($0.by, $0.agent, $0.action) = ("agent", desk, "cancel") }
        #expect(answered == #"python3[4711] "report"  got the answer "cancel" about \#(site), from desk[22]"#)
    }

    @Test func actionsOfTheBrokerNameNoProgram() {
        let cleared = line(.sessionCleared) { event in
            (event.client, event.origin, event.count, event.reason) = (nil, nil, 3, "SIGUSR1")
        }
        #expect(cleared == "the broker  cleared the session, 3 logins: SIGUSR1")
        #expect(line(.sessionCleared) { $0.count = 1 }.hasSuffix("for https://intranet.example, 1 login"))
    }

    /// The broker does not write control characters, but another program may have.
    @Test func controlCharactersAreReplaced() {
        let nasty = "\u{1B}[2J\n\u{202E}\u{9B}"
        let event: JSON = [
            "time": .string(nasty), "kind": .string(nasty),
            "client": ["name": .string(nasty), "executable": .string(nasty)],
        ]
        let other: JSON = [
            "kind": "challengeAnswered", "action": .string(nasty), "origin": .string(nasty), "user": .string(nasty),
            "source": .string(nasty), "reason": .string(nasty), "by": .string(nasty),
            "protectionSpace": ["protocol": .string(nasty), "host": .string(nasty), "realm": .string(nasty)],
        ]
        for json in [event, other] {
            #expect(!LogText.line(json).unicodeScalars.contains { $0.properties.generalCategory == .control })
            #expect(!LogText.line(json).unicodeScalars.contains { $0.properties.generalCategory == .format })
        }
    }

    @Test func sinceAcceptsTimesAndDurations() throws {
        #expect(LogStart(argument: "2026-11-21")?.milliseconds == 1_795_219_200_000)
        let (hour, day) = (try #require(LogStart(argument: "1h")), try #require(LogStart(argument: "1d")))
        #expect(abs(hour.milliseconds - day.milliseconds - 23 * 3_600_000) < 10_000)
        for wrong in ["", "h", "-1h", "1w", "1.5h", "99999999999999999999d", "now"] {
            #expect(LogStart(argument: wrong) == nil, "\(wrong)")
        }
    }
}
