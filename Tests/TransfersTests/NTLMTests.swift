import Foundation
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// NTLM: three messages on one connection, which then belongs to the user.
@Suite(.timed) struct NTLMTests {
    private static func challenge(_ field: String, _ status: String) -> ScriptedServer.Reply {
        .bytes(head(field, status))
    }

    /// A CHALLENGE_MESSAGE (MS-NLMP section 2.2.1.2): Unicode, extended session security, an empty list of target information.
    private static var type2: String {
        var message = Array("NTLMSSP\0".utf8) + [2, 0, 0, 0]
        message += [0, 0, 0, 0, 48, 0, 0, 0] + [0x05, 0x82, 0x88, 0x00]
        message += [1, 2, 3, 4, 5, 6, 7, 8] + Array(repeating: 0, count: 8)
        message += [4, 0, 4, 0, 48, 0, 0, 0] + [0, 0, 0, 0]
        return Data(message).base64EncodedString()
    }

    static func head(_ field: String, _ status: String) -> String {
        "HTTP/1.1 \(status)\r\n\(field): NTLM \(type2)\r\nContent-Length: 7\r\n\r\nsecond!"
    }

    private static let rounds = [challenge("WWW-Authenticate", "401 Who"), okay]

    private func request(
        _ url: String, _ identity: ConnectionIdentity = .number(1), password: String = "geheim",
        target: Handshake.Target = .origin
    ) -> TransferRequest {
        var request = TransfersTests.request(url)
        request.identity = identity
        request.handshake = Handshake(
            scheme: .ntlm, target: target, user: "älice", domain: "DOM", password: secret(password))
        return request
    }

    /// The messages of one connection, in order.
    private func messages(_ heard: String, _ field: String = "Authorization") -> [[UInt8]] {
        heard.split(separator: "\r\n").filter { $0.hasPrefix("\(field): ") }.map { line in
            guard line.hasPrefix("\(field): NTLM ") else { return [] }
            return Data(base64Encoded: String(line.dropFirst("\(field): NTLM ".count))).map { Array($0) } ?? []
        }
    }

    private func holds(_ message: [UInt8], _ text: String) -> Bool {
        let wanted = text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        return message.indices.contains { message[$0...].starts(with: wanted) }
    }

    @Test("Rules L3, N1 and N8: an NTLM login is two messages on one HTTP/1.1 connection", arguments: ["GET", "POST"])
    func threeMessagesOnOneConnection(method: String) async throws {
        let server = ScriptedServer(Self.rounds + [okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 {
                var request = request("\(server.url)/a")
                request.method = method
                if method == "POST" { request.body = .bytes(Array("body".utf8)) }
                let response = try await engine.exchange(request).get()
                #expect(response.status == 200 && response.httpVersion == "1.1")
                #expect(response.body == Array("ok".utf8) && response.headers.count == 1)
            }
        }
        #expect(server.heard.count == 1)
        let sent = messages(server.heard[0])
        // The second exchange sends no login: the connection is authenticated.
        #expect(sent.map { Array($0.prefix(9)) } == [1, 3].map { Array("NTLMSSP\0".utf8) + [$0] })
        #expect(holds(sent[1], "Älice") && holds(sent[1], "DOM"))
        #expect(!server.heard[0].contains("Upgrade") && !server.heard[0].contains("geheim"))
        #expect(server.heard[0].components(separatedBy: "\r\n\r\nbody").count == (method == "POST" ? 3 : 1))
    }

    @Test("Rules L2 and N1: a connection that NTLM has logged in serves no other identity")
    func theConnectionServesNoOtherIdentity() async throws {
        let server = ScriptedServer(Self.rounds + [okay, .hold], [okay, .hold], Self.rounds + [.hold])
        defer { server.stop() }
        try await withEngine { engine in
            #expect(await engine.exchange(request(server.url)).text == "ok")
            #expect(await engine.exchange(TransfersTests.request(server.url)).text == "ok")
            #expect(await engine.exchange(request(server.url, .number(2))).text == "ok")
            #expect(await engine.exchange(request(server.url)).text == "ok")
            // Another password is another login, even under the same identity.
            #expect(await engine.exchange(request(server.url, password: "other")).text == "ok")
        }
        #expect(server.heard.map { messages($0).count } == [2, 0, 2, 2])
    }

    @Test func aWrongPasswordIsAResponse() async throws {
        let refusal = "HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM\r\nContent-Length: 4\r\n\r\nnope"
        let server = ScriptedServer([Self.rounds[0], .bytes(refusal), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            let response = try await engine.exchange(request(server.url)).get()
            #expect(response.status == 401 && response.body == Array("nope".utf8))
            #expect(response.headers.first == HeaderField("WWW-Authenticate", "NTLM"))
        }
        #expect(messages(server.heard[0]).count == 2)
    }

    @Test(arguments: [
        "Basic realm=\"x\"", "Negotiate", "Digest realm=\"x\", nonce=\"y\"", "NTLM, Basic realm=\"x\"",
    ])
    func onlyTheSelectedSchemeIsUsed(offer: String) async throws {
        let reply = "HTTP/1.1 401 No\r\nWWW-Authenticate: \(offer)\r\nContent-Length: 4\r\n\r\nnope"
        let server = ScriptedServer([.bytes(reply), .bytes(reply), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            let outcome = await engine.exchange(request(server.url))
            #expect(outcome.text == "nope")
        }
        let sent = messages(server.heard[0])
        #expect(sent.count == 1 && sent[0].dropFirst(8).first == 1)
    }

    @Test func aProxyIsLoggedInToByItself() async throws {
        let rounds = [Self.challenge("Proxy-Authenticate", "407 Who")]
        let proxy = ScriptedServer(
            rounds + [okay, .hold], rounds + [.bytes("HTTP/1.1 200 OK\r\n\r\n")])
        defer { proxy.stop() }
        try await withEngine { engine in
            for url in ["http://o.invalid/", "https://o.invalid/"] {
                var request = request(url, .number(url.utf8.count), target: .proxy)
                request.authorization = secret("Bearer origin")
                request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
                let outcome = await engine.exchange(request)
                #expect(url.hasPrefix("https") ? outcome.failureKind == .tlsFailed : outcome.text == "ok")
            }
        }
        #expect(proxy.heard.count == 2 && proxy.heard[1].hasPrefix("CONNECT o.invalid:443 "))
        for heard in proxy.heard {
            #expect(messages(heard, "Proxy-Authorization").map { $0.dropFirst(8).first } == [1, 3])
        }
        #expect(!proxy.heard[1].contains("Bearer"))
    }

    @Test func aRefusalOfTheProxyIsAResponse() async throws {
        let refusal = "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nContent-Length: 4\r\n\r\nnope"
        for url in ["http://o.invalid/", "https://o.invalid/"] {
            let proxy = ScriptedServer([Self.challenge("Proxy-Authenticate", "407 Who"), .bytes(refusal), .hold])
            defer { proxy.stop() }
            try await withEngine { engine in
                var request = request(url, target: .proxy)
                request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
                let response = try await engine.exchange(request).get()
                #expect(response.status == 407 && response.isFromProxy)
                #expect(response.headers.first == HeaderField("Proxy-Authenticate", "NTLM"))
            }
        }
    }

    @Test("Rule L8: a connection-level login excludes any other login to its target")
    func aHandshakeLoginExcludesOtherLoginsToItsTarget() async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        var requests = [request(server.url, .none), request(server.url), request(server.url, target: .proxy)]
        requests[1].authorization = secret("Basic eDp5")
        try await withEngine { engine in
            for request in requests { #expect(await engine.exchange(request).failureKind == .internalError) }
        }
        #expect(server.heard.isEmpty)
    }

    @Test func charactersThatLibcurlEncodesWronglyAreNotSent() async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        var requests = [request(server.url), request(server.url), request(server.url, password: "€uro")]
        requests[0].handshake?.user = "Łukasz"
        requests[1].handshake?.domain = "日本"
        try await withEngine { engine in
            for request in requests {
                #expect(await engine.exchange(request).failure?.cause == .charactersUnsupported)
            }
        }
        #expect(server.heard.isEmpty)
    }

    @Test func passwordsAreWidenedFromOneByteForEachCharacter() throws {
        let bytes = try NTLMText.password(secret("aé÷ÿ")).withUnsafeBytes { Array($0) }
        #expect(bytes == [0x61, 0xE9, 0xF7, 0xFF])
        for text in ["\u{100}", "\u{10FFFF}"] {
            #expect(throws: TransferFailure.self) { try NTLMText.password(secret(text)) }
        }
    }
}
