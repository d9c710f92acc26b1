import Foundation
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// The body of a challenge or a redirect does not decide what becomes of it.
@Suite(.timed) struct IntermediateResponseTests {
    static let heads = [
        "401 No\r\nWWW-Authenticate: Basic", "302 Go\r\nLocation: /", "407 No\r\nProxy-Authenticate: Basic",
    ]
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)

    @Test(
        arguments: heads,
        [
            ("Content-Length: 921\r\n\r\nabc", TransferFailure.Kind.connectionLost),
            ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", .connectionLost),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA\0B: c\r\n\r\n", .malformedResponse),
            ("Transfer-Encoding: compress\r\n\r\nabc", .malformedResponse),
        ])
    func aBrokenBodyIsNotTheOutcome(head: String, rest: (text: String, kind: TransferFailure.Kind)) async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 \(head)\r\n\(rest.text)")])
        defer { server.stop() }
        try await withEngine { engine in
            for proxy in [nil, ProxyRequest(kind: .http, host: "127.0.0.1", port: server.port)] {
                var request = request(server.url)
                request.proxy = proxy
                let response = try await engine.exchange(request).get()
                #expect(response.status == Int(head.prefix(3)) && response.bodyFailure?.kind == rest.kind)
                #expect(response.isFromProxy == (proxy != nil && response.status == 407))
            }
        }
    }

    @Test func aHeadThatIsCutIsTheOutcome() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\n")])
        defer { server.stop() }
        let outcome = try await withEngine { await $0.exchange(request(server.url)) }
        #expect(outcome.failureKind == .connectionLost)
    }

    /// The rest of the body can still be read, if the response becomes the result.
    @Test(arguments: heads) func aSlowBodyIsNotWaitedFor(head: String) async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 \(head)\r\nContent-Length: 9\r\n\r\nabc"), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            var request = request(server.url)
            request.options.delivery = .beyond(1000)
            let response = try await engine.exchange(request).get()
            #expect(response.status == Int(head.prefix(3)) && response.bodyFailure == nil)
            let body = try #require(response.openBody)
            #expect(body.announcedBytes == 9)
            let part = await withCheckedContinuation { continuation in
                engine.read(body.transfer, maxBytes: 10) { continuation.resume(returning: $0) }
            }
            #expect(try part.get().bytes == Array("abc".utf8) && part.get().isAtEnd == false)
            engine.cancel(body.transfer)
            try await until { engine.figures.running == 0 }
        }
    }

    @Test func aSlowRefusalOfATunnelIsNotWaitedFor() async throws {
        let server = ScriptedServer([
            .bytes("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=p\r\nContent-Length: 9\r\n\r\nabc"), .hold,
        ])
        defer { server.stop() }
        try await withEngine { engine in
            var request = request("https://o.invalid/")
            request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: server.port)
            let response = try await engine.exchange(request).get()
            #expect(response.status == 407 && response.isFromProxy)
        }
    }

    /// RFC 9110 section 15.2: a client must be able to parse interim responses to any request.
    @Test(arguments: [
        "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\nA: b\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 102 X\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nTransfer-Encoding:\r\n chunked\r\ncontent-length: 5\r\n\r\n",
    ])
    func anInterimResponseToConnectIsSkipped(interim: String) async throws {
        let server = TLSServer(Self.leaf)
        let refusal = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=p\r\nContent-Length: 2\r\n\r\nno"
        let proxy = ScriptedServer(
            [.tunnel(server.port, before: interim)], [.bytes(interim + refusal), .hold],
            [.twice(interim, refusal), .hold])
        defer {
            server.stop()
            proxy.stop()
        }
        try await withEngine(trusting: Self.authority) { engine in
            var request = request("https://127.0.0.1:\(server.port)/")
            request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
            let response = try await engine.exchange(request).get()
            #expect(response.body == Array("ok".utf8) && response.headers.map(\.name) == ["Content-Length"])
            request.proxy?.authorization = secret("Basic eDp5")
            for number in 1...2 {
                request.identity = .number(number)
                let response = try await engine.exchange(request).get()
                #expect(response.status == 407 && response.isFromProxy)
                #expect(response.headers.first == HeaderField("Proxy-Authenticate", "Basic realm=p"))
            }
        }
    }

    /// Its fields say nothing of the challenge, which has no length here, or of the connection, on which the login continues.
    @Test(arguments: [
        "Transfer-Encoding: chunked", "Content-Length: 5", "connection: close", "Proxy-Connection: close",
    ])
    func theFieldsOfAnInterimResponseToConnectAreIgnored(field: String) async throws {
        let interim = "HTTP/1.1 103 Early\r\n\(field)\r\n\r\n"
        let challenge = "HTTP/1.1 407 No\r\nProxy-Authenticate: \(NTLMAttemptOnTheWireTests.type2())\r\n\r\n"
        let proxy = ScriptedServer(
            [.bytes(interim + challenge), .bytes(interim + "HTTP/1.1 403 No\r\n\r\n"), .hold])
        defer { proxy.stop() }
        var request = request("https://o.invalid/", timeout: .seconds(5))
        request.identity = .number(1)
        request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
        request.handshake = Handshake(
            scheme: .ntlm, target: .proxy, user: "alice", domain: "DOM", password: secret("geheim"))
        _ = try await withEngine { await $0.exchange(request) }
        #expect(proxy.heard.map { $0.components(separatedBy: "CONNECT ").count - 1 } == [2])
    }

    /// RFC 9110 section 15.2: an interim response has no body.
    @Test(arguments: ["Transfer-Encoding: chunked", "Content-Length: 5", "Content-Length: 1, 2", "Content-Length: x"])
    func anInterimResponseHasNoBody(field: String) async throws {
        let both = "HTTP/1.1 103 Early\r\n\(field)\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        let server = ScriptedServer([.bytes(both), okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 { #expect(await engine.exchange(request(server.url)).text == "ok") }
            #expect(engine.figures.connectionsOpened == 1)
        }
    }

    @Test(arguments: ["Connection: close\r\n", "", "Content-Length: 2\r\nConnection: close\r\n\r\nno"])
    func aServerThatRefusesToBeAskedGetsTheBody(more: String) async throws {
        let end = more.hasSuffix("no") ? more : "\(more)Content-Length: 0\r\n\r\n"
        let refusal = "HTTP/1.1 417 No\r\n\(end)"
        let server = ScriptedServer([.bytes(refusal)] + (more.isEmpty ? [okay] : []), [okay])
        defer { server.stop() }
        let body = String(repeating: "x", count: TransferRequest.announcedBodyBytes + 1)
        let outcome = try await withEngine { await $0.exchange(request(server.url, "PUT", body: body)) }
        #expect(outcome.text == "ok", "\(String(describing: outcome.failure))")
        let last = try #require(server.heard.last)
        #expect(last.hasSuffix(body) && server.heard.joined().components(separatedBy: "Expect:").count == 2)
    }

    @Test func aSecondRefusalIsTheResult() async throws {
        let refusal = ScriptedServer.Reply.bytes("HTTP/1.1 417 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        let server = ScriptedServer([refusal])
        defer { server.stop() }
        let body = String(repeating: "x", count: TransferRequest.announcedBodyBytes + 1)
        let outcome = try await withEngine { await $0.exchange(request(server.url, "PUT", body: body)) }
        #expect(try outcome.get().status == 417 && server.heard.count == 2)
    }
}
