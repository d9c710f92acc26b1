import COpenSSL
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Input that arrives on a connection before a request is never the response to that request (RFC 9112 section 9.2).
@Suite(.timed) struct StrayInputTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)
    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let injected = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nINJECTED"

    private static let strays = [
        injected, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "\r\n", "x",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ]

    private func requests(_ server: ScriptedServer) -> [Int] {
        server.heard.map { $0.split(separator: "HTTP/1.1\r\n").count - 1 }
    }

    @Test("Rule L14: input between two responses closes the connection", arguments: strays)
    func inputBetweenTwoResponsesClosesTheConnection(stray: String) async throws {
        let server = ScriptedServer([.twice(Self.answer, stray), okay, okay], [okay, okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for count in 1...3 {
                var request = request("\(server.url)/\(count)", "POST", body: "the body")
                request.authorization = secret("Basic x")
                #expect(await engine.exchange(request).text == "ok")
                try await until { server.late == 1 }
            }
            #expect(engine.figures.connectionsOpened == 2)
        }
        #expect(requests(server) == [1, 2])
        #expect(server.heard[1].hasPrefix("POST /2 ") && server.heard[1].contains("\r\n\r\nthe bodyPOST /3 "))
    }

    enum Pool: CaseIterable { case common, streamed, identity }

    @Test("Rule L14: in every pool", arguments: Pool.allCases)
    func inEveryPool(pool: Pool) async throws {
        let server = ScriptedServer([.twice(Self.answer, Self.injected), okay], [okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 {
                var request = request(server.url)
                if pool == .identity { request.identity = .number(1) }
                if pool == .streamed {
                    request.options.delivery = .fromHeader
                    request.options.awaitsBody = true
                }
                #expect(await engine.exchange(request).text == "ok")
                try await until { server.late == 1 }
            }
        }
        #expect(requests(server) == [1, 1])
    }

    /// A streamed request body has not been read before the connection is given up.
    @Test func aStreamedBodyIsSentOnce() async throws {
        let server = ScriptedServer([.twice(Self.answer, Self.injected), okay], [okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            #expect(await engine.exchange(request(server.url)).text == "ok")
            try await until { server.late == 1 }
            let source = engine.makeSource(size: 4, storesCopy: false, memory: nil, disk: nil)
            let (near, far) = socketPair()
            engine.attach(source, socket: near)
            await write("body", to: far)
            var upload = request(server.url, "PUT")
            upload.body = .stream(RequestStream(source: source, size: 4))
            #expect(await engine.exchange(upload).text == "ok")
        }
        #expect(requests(server) == [1, 1] && server.heard[1].hasSuffix("\r\n\r\nbody"))
    }

    /// In one packet with the response, and for each kind of end of a response.
    @Test(
        "Rule L14: bytes behind the end of a response close the connection", arguments: ends,
        [injected, "\r\n", "x", ""])
    func bytesBehindAResponseCloseTheConnection(
        end: (method: String, response: String), stray: String
    ) async throws {
        let both = "HTTP/1.1 \(end.response)\(stray)"
        let isClean = stray.isEmpty
        let server = ScriptedServer([.bytes(both), okay, .hold], [okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            let text = await engine.exchange(request(server.url, end.method)).text
            #expect(text == "" || text == "ok" || text == "no")
            #expect(await engine.exchange(request(server.url)).text == "ok")
            #expect(engine.figures.connectionsOpened == (isClean ? 1 : 2))
        }
        #expect(requests(server) == (isClean ? [2] : [1, 1]))
    }

    private static let ends = [
        ("GET", "200 OK\r\nContent-Length: 2\r\n\r\nok"), ("GET", "204 No\r\n\r\n"), ("GET", "304 Not\r\n\r\n"),
        ("GET", "304 Not\r\nContent-Length: 5\r\n\r\n"), ("GET", "200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("POST", "201 OK\r\nContent-Length: 0\r\n\r\n"), ("GET", "103 Early\r\n\r\nHTTP/1.1 204 No\r\n\r\n"),
        ("HEAD", "200 OK\r\nContent-Length: 5\r\n\r\n"), ("HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        ("GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n"),
        ("GET", "401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno"),
        ("GET", "401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"),
        ("GET", "302 There\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    ]

    /// The server's next answer is a response to the next request, also in the middle of a login.
    @Test(
        "Rule L14: bytes behind a challenge of NTLM start the login again",
        arguments: [
            "Content-Length: 0\r\n\r\n", "Content-Length: 2\r\n\r\nno",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        ])
    func bytesBehindAChallengeOfNTLM(body: String) async throws {
        let challenge = "HTTP/1.1 401 Who\r\nWWW-Authenticate: \(NTLMAttemptOnTheWireTests.type2())\r\n\(body)"
        let server = ScriptedServer([.bytes(challenge + Self.injected), okay], [.bytes(challenge), okay, .hold])
        defer { server.stop() }
        var request = request(server.url)
        request.identity = .number(1)
        request.handshake = Handshake(
            scheme: .ntlm, target: .origin, user: "alice", domain: "DOM", password: secret("geheim"))
        try await withEngine { #expect(await $0.exchange(request).text == "ok") }
        #expect(requests(server) == [1, 2])
    }

    @Test func aForwardingProxyAnswersOneRequestAtATime() async throws {
        let proxy = ScriptedServer([.twice(Self.answer, Self.injected), okay], [okay, .hold])
        defer { proxy.stop() }
        try await withEngine { engine in
            for _ in 0..<2 {
                var request = request("http://o.invalid/")
                request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
                #expect(await engine.exchange(request).text == "ok")
                try await until { proxy.late == 1 }
            }
        }
        #expect(requests(proxy) == [1, 1])
    }

    enum Route: CaseIterable { case direct, tunnel, encryptedTunnel, encryptedProxy }

    @Test("Rule L14: within TLS and tunnels", arguments: Route.allCases, [TLS1_2_VERSION, TLS1_3_VERSION])
    func withinTLS(route: Route, version: Int32) async throws {
        let options = TLSServer.Options(version: version, late: .answer(Self.injected))
        let server = TLSServer(Self.leaf, options)
        let tunnel = ScriptedServer([.tunnel(server.port)])
        let encrypted = TLSServer(Self.leaf, TLSServer.Options(version: version, tunnel: server.port))
        defer {
            server.stop()
            tunnel.stop()
            encrypted.stop()
        }
        try await withEngine(trusting: Self.authority) { engine in
            for count in 1...2 {
                let isForwarded = route == .encryptedProxy
                var request = request(isForwarded ? "http://o.invalid/" : "https://127.0.0.1:\(server.port)/")
                switch route {
                case .direct: break
                case .tunnel: request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: tunnel.port)
                case .encryptedTunnel:
                    request.proxy = ProxyRequest(kind: .https, host: "127.0.0.1", port: encrypted.port)
                case .encryptedProxy:
                    request.proxy = ProxyRequest(kind: .https, host: "127.0.0.1", port: server.port)
                }
                let outcome = await engine.exchange(request)
                #expect(outcome.text == "ok", "\(String(describing: outcome.failure))")
                try await until { server.late == count }
            }
            #expect(engine.figures.connectionsOpened == 2)
        }
        #expect(server.heard.count == 2)
    }

    /// RFC 8446 section 4.6: such messages may arrive at any time, and mean nothing for the next request.
    @Test func aSessionTicketIsNotInput() async throws {
        let server = TLSServer(Self.leaf, TLSServer.Options(late: .sessionTicket))
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            for _ in 0..<3 {
                #expect(await engine.exchange(request("https://127.0.0.1:\(server.port)/")).text == "ok")
                try await until { server.late == 1 }
            }
            #expect(engine.figures.connectionsOpened == 1)
        }
    }
}
