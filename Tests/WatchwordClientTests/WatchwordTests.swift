import Foundation
import JSONText
import Synchronization
import Testing
import WatchwordClient
import WatchwordProtocol

@Suite struct WatchwordTests {
    private static let welcome = #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n"
    private static let question =
        #"{"jsonrpc":"2.0","id":7,"method":"auth/challenge","params":{"url":"http://h/","previousFailureCount":0,"#
        + #""protectionSpace":{"realm":"Staff","authenticationMethod":"httpBasic"}}}"# + "\n"
    private static let page =
        #"{"jsonrpc":"2.0","id":2,"result":{"fetchId":"f1","status":200,"headers":[["A","1"],["A","2"]],"#
        + #""body":{"type":"handle","fetchId":"f1"}}}"# + "\n"

    private static func part(_ id: Int, _ value: String, isAtEnd: Bool) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"result":{"data":{"type":"base64","value":"\#(value)"},"offsetBytes":0,"eof":\#(isAtEnd)}}"#
            + "\n"
    }

    /// A broker that sends `answers` in turn, and records the received messages.
    private final class Peer: Sendable {
        let told = Mutex<[String]>([])
        let answers: [String]

        init(_ answers: [String]) { self.answers = answers }

        func take(_ line: String) -> String? {
            told.withLock { told in
                told.append(line)
                return told.count <= answers.count ? answers[told.count - 1] : nil
            }
        }
    }

    private func conversation(
        _ answers: [String], answer: @escaping (Watchword.Challenge) -> Watchword.Answer
    ) throws -> (response: Watchword.Response, told: [String]) {
        let peer = Peer(answers)
        let scripted = ScriptedPeer { peer.take($0) }
        let response = try Watchword(socket: scripted.location.path).fetch("http://h/", answer: answer)
        return (response, peer.told.withLock { $0 })
    }

    @Test func aChallengeIsAnsweredAndALargeBodyReadInParts() throws {
        let answers = [
            Self.welcome, Self.question, Self.page, Self.part(3, "/w==", isAtEnd: false),
            Self.part(4, "YQ==", isAtEnd: true),
        ]
        let (response, told) = try conversation(answers) { challenge in
            #expect(challenge.realm == "Staff" && challenge.authenticationMethod == "httpBasic")
            #expect(challenge.url == "http://h/" && challenge.previousFailureCount == 0)
            return .login(user: "bob", password: Array("pw".utf8).withUnsafeBytes { Secret(copying: $0) })
        }
        #expect(response.status == 200 && response.body == [0xFF, UInt8(ascii: "a")])
        #expect(response.headers.map(\.value) == ["1", "2"])
        #expect(told[2].contains(#""user":"bob""#) && told[2].contains(#""password":"pw""#))
    }

    @Test(arguments: [
        (Watchword.Answer.cancel, "cancel"), (.proceed, "continue"), (.useDefault, "default"), (.reject, "reject"),
        (.login(file: "/nonexistent"), "cancel"), (.login(file: "/dev/null"), "cancel"),
        (.login(file: "/dev/zero"), "cancel"),
    ]) func decisions(answer: Watchword.Answer, action: String) throws {
        let answers = [
            Self.welcome, Self.question, Self.page, Self.part(3, "", isAtEnd: true),
        ]
        let (_, told) = try conversation(answers) { _ in answer }
        #expect(told[2].contains(#""action":"\#(action)""#))
    }

    @Test func aStoredLoginIsChosenAndItsOutcomeReported() throws {
        let question =
            #"{"jsonrpc":"2.0","id":7,"method":"auth/challenge","params":{"url":"http://h/","knownUsers":["#
            + #"{"id":"session:1","user":"bob","source":"session"},{"id":"malformed","user":"eve","source":"session"},"#
            + #"{"id":"keyring:/2","user":"K","domain":"CORP","source":"keyring"}]}}"#
            + "\n"
        let resolved =
            #"{"jsonrpc":"2.0","method":"auth/resolved","params":{"challengeId":"c","action":"credential","#
            + #""by":"client","outcome":"accepted","user":"K"}}"# + "\n"
        let peer = Peer([Self.welcome, question, resolved + Self.page, Self.part(3, "", isAtEnd: true)])
        let scripted = ScriptedPeer { peer.take($0) }
        let broker = try Watchword(socket: scripted.location.path)
        var outcomes: [String?] = []
        broker.onResolved = { outcomes.append($0["outcome"]?.string) }
        _ = try broker.fetch("http://h/") { challenge in
            #expect(challenge.knownUsers.map(\.user) == ["bob", "K"])
            // A user with KELVIN SIGN is a different user.
            #expect(!challenge.knownUsers.contains { $0.user == "\u{212A}" })
            return challenge.knownUsers.first { $0.account.text == #"CORP\K"# }.map(Watchword.Answer.stored) ?? .cancel
        }
        #expect(peer.told.withLock { $0[2] }.contains(#""credential":{"type":"stored","id":"keyring:/2"}"#))
        #expect(outcomes == ["accepted"])
    }

    @Test func aChallengeContainsItsLoginInABrowser() throws {
        let login =
            #"{"flow":"device","issuer":"https://login.example","clientId":"watchword","scopes":["read"],"#
            + #""url":"https://login.example/device","userCode":"WDJB-MJHT","expiresAt":"2026-11-25T20:00:00Z"}"#
        let question =
            #"{"jsonrpc":"2.0","id":7,"method":"auth/challenge","params":{"url":"http://h/","login":\#(login)}}"# + "\n"
        let answers = [Self.welcome, question, Self.page, Self.part(3, "", isAtEnd: true)]
        _ = try conversation(answers) { challenge in
            #expect(challenge.login?.device?.userCode == "WDJB-MJHT" && challenge.login?.scopes == ["read"])
            return .cancel
        }
    }

    @Test func twoLinesOfAFileAreALogin() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "ww-\(UUID().uuidString.prefix(8))").path
        try "bob\npass word\n".write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard case .credential(.login(let login)) = Watchword.Answer.login(file: path) else {
            Issue.record("no login")
            return
        }
        #expect(login.user == "bob")
        #expect(login.secret == Array("pass word".utf8).withUnsafeBytes { Secret(copying: $0) })
    }

    @Test func aMalformedBodyIsNotReadAsEmpty() {
        let broken =
            #"{"jsonrpc":"2.0","id":2,"result":{"status":200,"headers":[],"#
            + #""body":{"type":"base64","value":"?"}}}"#
        #expect(throws: ClientFailure.protocolViolation("malformed body")) {
            try conversation([Self.welcome, broken + "\n"]) { _ in .cancel }
        }
    }
}
