import Foundation
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// SECURITY-RULES N8 on the wire: only NTLMv2, and one answer is one attempt, at servers and at proxies.
@Suite(.timed) struct NTLMAttemptOnTheWireTests {
    enum Place: CaseIterable { case server, proxy, tunnel }

    private static let closing = "Connection: close\r\nProxy-Connection: close\r\n"

    private static func challenge(_ place: Place, _ value: String, _ more: String = "", version: String = "1.1")
        -> String
    {
        let (status, field) = place == .server ? (401, "WWW-Authenticate") : (407, "Proxy-Authenticate")
        return "HTTP/\(version) \(status) Who\r\n\(field): \(value)\r\n\(more)Content-Length: 4\r\n\r\nnope"
    }

    /// A CHALLENGE_MESSAGE with these flags and this list of target information, by default with one name.
    static func type2(flags: UInt32 = 0x0088_8205, list: [UInt8] = [2, 0, 2, 0, 0x44, 0, 0, 0, 0, 0]) -> String {
        let fields: [UInt8] = [UInt8(list.count), 0, UInt8(list.count), 0, 48, 0, 0, 0]
        let flags = (0..<4).map { UInt8(flags >> (8 * $0) & 0xFF) }
        let message =
            Array("NTLMSSP\0".utf8) + [2, 0, 0, 0] + Array(repeating: 0, count: 8) + flags + [1, 2, 3, 4, 5, 6, 7, 8]
            + Array(repeating: 0, count: 8) + fields + list
        return "NTLM " + Data(message).base64EncodedString()
    }

    private func request(_ place: Place, _ port: Int) -> TransferRequest {
        let url =
            switch place {
            case .server: "http://127.0.0.1:\(port)/"
            case .proxy: "http://o.invalid/"
            case .tunnel: "https://o.invalid/"
            }
        var request = TransfersTests.request(url)
        request.identity = .number(1)
        if place != .server { request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: port) }
        request.handshake = Handshake(
            scheme: .ntlm, target: place == .server ? .origin : .proxy, user: "alice", domain: "DOM",
            password: secret("geheim"))
        return request
    }

    /// The messages over all connections, in order.
    private func sent(_ server: ScriptedServer) -> [[UInt8]] {
        server.heard.joined().split(separator: "\r\n").compactMap { line in
            guard let value = line.range(of: "uthorization: NTLM ") else { return nil }
            return Data(base64Encoded: String(line[value.upperBound...])).map { Array($0) }
        }
    }

    /// The numbers of the messages.
    private func messages(_ server: ScriptedServer) -> [UInt8] { sent(server).map { $0[8] } }

    private func outcome(_ place: Place, _ server: ScriptedServer) async throws -> TransferPort.Outcome {
        try await withEngine { await $0.exchange(request(place, server.port)) }
    }

    /// libcurl alone answers each of the first two with an LM and an NTLMv1 response, of 24 bytes each.
    @Test(
        arguments: Place.allCases,
        [
            type2(flags: 0x0000_8205), type2(flags: 0x0080_8205), type2(flags: 0x0080_8205, list: []), "NTLM !!!",
            "NTLM TlRMTVNTUAA=",
        ])
    func aChallengeThatIsNotForVersion2IsNotAnswered(place: Place, value: String) async throws {
        let server = ScriptedServer([.bytes(Self.challenge(place, value)), okay])
        defer { server.stop() }
        let failure = try await outcome(place, server).failure
        #expect(failure?.cause == .ntlmChallengeUnusable && failure?.detail.contains("type 2") == true)
        #expect(failure?.detail.contains(place == .server ? "http://127.0.0.1" : "the proxy at 127.0.0.1") == true)
        #expect(messages(server) == [1])
    }

    /// An NTLMv1 response has 24 bytes, and an NTLMv2 response a blob behind its first 16.
    @Test(
        "Rule N8: every response is NTLMv2, whatever the flags and the target information are",
        arguments: Place.allCases,
        [[2, 0, 2, 0, 0x44, 0, 0, 0, 0, 0], [], [0, 0, 0, 0], [7]])
    func everyResponseIsOfVersion2(place: Place, list: [UInt8]) async throws {
        // Bit 0 is Unicode, bit 7 the LM key, bit 9 NTLM; then extended session security and target information.
        for flags: UInt32 in [0x8205, 0x8204, 0x8285, 0x8005, 0] {
            for security: UInt32 in [0, 0x0008_0000, 0x0080_0000, 0x0088_0000] {
                let server = ScriptedServer([
                    .bytes(Self.challenge(place, Self.type2(flags: flags | security, list: list))), okay,
                ])
                defer { server.stop() }
                _ = try await outcome(place, server)
                let isAnswered = security == 0x0008_0000 || security == 0x0088_0000 && list != [7]
                #expect(messages(server) == (isAnswered ? [1, 3] : [1]))
                for answer in sent(server).dropFirst() {
                    let (length, start) = (
                        Int(answer[20]) + 256 * Int(answer[21]), Int(answer[24]) + 256 * Int(answer[25])
                    )
                    try #require(length > 24 && start + length <= answer.count)
                    #expect(answer[(start + 16)...].starts(with: [1, 1, 0, 0, 0, 0, 0, 0]))
                }
            }
        }
    }

    @Test func aMessageHiddenBehindAnotherIsRecognised() async throws {
        let good = Self.type2()
        let weak = Self.type2(flags: 0x0000_8205)
        for value in [
            "\(good)\r\nWWW-Authenticate: \(weak)", "Basic realm=\"x, \(weak)",
            "\(good)\r\nwww-authenticate: \(weak)\rX",
        ] {
            let server = ScriptedServer([.bytes(Self.challenge(.server, value)), okay])
            defer { server.stop() }
            let failure = try await outcome(.server, server).failure
            #expect(failure?.cause == .ntlmChallengeUnusable)
            #expect(messages(server) == [1])
        }
    }

    /// libcurl alone sends thousands of messages until the timeout.
    @Test("Rule N8: a challenge after the answer is a refusal", arguments: Place.allCases)
    func aChallengeAfterTheAnswerIsARefusal(place: Place) async throws {
        let again = ScriptedServer.Reply.bytes(Self.challenge(place, Self.type2()))
        let server = ScriptedServer(Array(repeating: again, count: 8))
        defer { server.stop() }
        let response = try await outcome(place, server).get()
        #expect(response.status == (place == .server ? 401 : 407) && response.isFromProxy == (place != .server))
        #expect(response.headers.first?.value == Self.type2())
        #expect(messages(server) == [1, 3])
    }

    @Test("Rule N8: two offers in one refusal start no further attempt", arguments: Place.allCases)
    func twoOffersInOneRefusalBeginNothing(place: Place) async throws {
        let field = place == .server ? "WWW-Authenticate" : "Proxy-Authenticate"
        let refusal = ScriptedServer.Reply.bytes(Self.challenge(place, "NTLM\r\n\(field): NTLM"))
        let server = ScriptedServer([.bytes(Self.challenge(place, Self.type2()))] + Array(repeating: refusal, count: 8))
        defer { server.stop() }
        let response = try await outcome(place, server).get()
        #expect(response.status == (place == .server ? 401 : 407))
        #expect(messages(server) == [1, 3])
    }

    /// libcurl alone makes thousands of connections until the timeout.
    @Test(
        arguments: Place.allCases,
        [
            ("NTLM", closing, "1.1"), (type2(), closing, "1.1"), ("NTLM", "", "1.0"), (type2(), "", "1.0"),
            ("NTLM", "", "1.1"),
        ])
    func noAttemptStartsAgain(place: Place, reply: (value: String, more: String, version: String)) async throws {
        let head = Self.challenge(place, reply.value, reply.more, version: reply.version)
        let isKept = reply.version == "1.1" && reply.more.isEmpty
        let server = ScriptedServer(Array(repeating: .bytes(head), count: isKept ? 8 : 1))
        defer { server.stop() }
        let failure = try await outcome(place, server).failure
        #expect(failure?.cause == .ntlmNotContinued, "\(String(describing: failure))")
        // libcurl does not see that the proxy closes the connection, and sends the answer into it.
        #expect(messages(server).starts(with: [1]) && messages(server).count <= (place == .tunnel ? 2 : 1))
        #expect(server.heard.count == 1)
    }

    @Test func aServerThatHangsUpOnTheAnswerIsNotSentAnother() async throws {
        let server = ScriptedServer([.bytes(Self.challenge(.server, Self.type2())), .close])
        defer { server.stop() }
        let failure = try await outcome(.server, server).failure
        #expect(failure?.cause == .ntlmNotContinued)
        #expect(messages(server) == [1, 3])
    }

    /// The state that one login leaves on a connection must not make the next login start in its middle.
    @Test func aConnectionThatIsNotLoggedInIsNotUsedAgain() async throws {
        let other = ScriptedServer.Reply.bytes(Self.challenge(.server, "Basic realm=\"x\""))
        let server = ScriptedServer(
            [
                other, .bytes(Self.challenge(.server, "NTLM")), .bytes(Self.challenge(.server, Self.type2())), okay,
                .hold,
            ],
            [.bytes(Self.challenge(.server, Self.type2())), okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for status in [401, 200] {
                let response = try await engine.exchange(request(.server, server.port)).get()
                #expect(response.status == status)
            }
        }
        #expect(messages(server) == [1, 1, 3] && server.heard.count == 2)
    }

    /// The login of the old connection does not count on the new one.
    @Test("Rule L14: a connection that is given up takes its login with it")
    func aConnectionThatIsGivenUpTakesItsLoginWithIt() async throws {
        let injected = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nINJECTED"
        let server = ScriptedServer(
            [
                .bytes(Self.challenge(.server, Self.type2())),
                .twice("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", injected), .hold,
            ],
            [.bytes(Self.challenge(.server, Self.type2())), okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 {
                #expect(await engine.exchange(request(.server, server.port)).text == "ok")
                try await until { server.late == 1 }
            }
        }
        #expect(messages(server) == [1, 3, 1, 3] && server.heard.count == 2)
    }

    @Test("Rule 22: a login that the server has forgotten is not repeated by the transfer, which would not be counted")
    func aForgottenLoginIsNotRepeated() async throws {
        let rounds: [ScriptedServer.Reply] = [.bytes(Self.challenge(.server, Self.type2())), okay]
        let server = ScriptedServer(rounds + [.bytes(Self.challenge(.server, "NTLM")), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            #expect(await engine.exchange(request(.server, server.port)).text == "ok")
            let outcome = await engine.exchange(request(.server, server.port))
            #expect(throws: TransferFailure.self) { try outcome.get() }
            if case .failure(let failure) = outcome { #expect(failure.cause == .loginConnectionEnded) }
        }
        #expect(messages(server) == [1, 3] && server.heard.count == 1)
    }

    /// At a proxy, a new connection would log in before the transfer could stop it.
    @Test("Rule 22: after a kept connection has ended with the request, the transfer makes no other one")
    func noOtherConnectionIsMade() async throws {
        let rounds: [ScriptedServer.Reply] = [.bytes(Self.challenge(.server, Self.type2())), okay]
        let server = ScriptedServer(rounds + [.close], [.hold])
        defer { server.stop() }
        try await withEngine { engine in
            #expect(await engine.exchange(request(.server, server.port)).text == "ok")
            let failure = await engine.exchange(request(.server, server.port)).failure
            #expect(failure?.cause == .loginConnectionEnded)
        }
        #expect(messages(server) == [1, 3] && server.heard.count == 1)
    }
}
