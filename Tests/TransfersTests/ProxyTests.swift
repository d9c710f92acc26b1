import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// The bytes that a proxy receives and sends.
@Suite(.timed) struct ProxyTests {
    private static let refusal: ScriptedServer.Reply = .bytes(
        "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 4\r\n\r\nbody")

    private func request(
        _ url: String, _ server: ScriptedServer, _ kind: ProxyRequest.Kind = .http, authorization: String? = nil
    ) -> TransferRequest {
        var request = TransfersTests.request(url, authorization: "Basic b3JpZ2lu")
        request.proxy = ProxyRequest(
            kind: kind, host: "127.0.0.1", port: server.port, authorization: authorization.map(secret))
        return request
    }

    @Test("Rules R15 and L13: a plain request carries each login in its own field")
    func aPlainRequestCarriesBothLogins() async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            let request = request("http://o.invalid/a", server, authorization: "Basic cHJveHk=")
            #expect(await engine.exchange(request).text == "ok")
        }
        let expected =
            "GET http://o.invalid/a HTTP/1.1\r\nHost: o.invalid\r\nUser-Agent: watchword\r\nAccept: */*\r\n"
            + "Proxy-Connection: Keep-Alive\r\nAuthorization: Basic b3JpZ2lu\r\nProxy-Authorization: Basic cHJveHk=\r\n\r\n"
        #expect(server.heard == [expected])
    }

    @Test func aPlainRefusalIsFromTheProxy() async throws {
        let server = ScriptedServer([Self.refusal])
        defer { server.stop() }
        try await withEngine { engine in
            let response = try await engine.exchange(request("http://o.invalid/a", server)).get()
            #expect(response.status == 407 && response.isFromProxy)
            #expect(response.headers.first == HeaderField("Proxy-Authenticate", "Basic realm=\"p\""))
            #expect(response.body == Array("body".utf8))
            // The same response of an origin is not a failure.
            var direct = request(server.url, server)
            direct.proxy = nil
            let answer = try await engine.exchange(direct).get()
            #expect(answer.status == 407 && !answer.isFromProxy)
        }
    }

    @Test(
        "Rules R15 and L13: CONNECT carries the login of the proxy only, and its refusal is a response of the proxy",
        arguments: [nil, "Basic cHJveHk="])
    func aRefusedTunnelIsAResponse(authorization: String?) async throws {
        let server = ScriptedServer([Self.refusal])
        defer { server.stop() }
        try await withEngine { engine in
            let request = request("https://o.invalid/a", server, authorization: authorization)
            let response = try await engine.exchange(request).get()
            #expect(response.status == 407 && response.isFromProxy)
            #expect(response.headers.first == HeaderField("Proxy-Authenticate", "Basic realm=\"p\""))
        }
        let login = authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? ""
        let head =
            "CONNECT o.invalid:443 HTTP/1.1\r\nHost: o.invalid:443\r\nUser-Agent: watchword\r\n"
            + "Proxy-Connection: Keep-Alive\r\n\(login)\r\n"
        #expect(server.heard == [head])
    }

    @Test(arguments: [301, 401, 403, 502])
    func anotherAnswerToConnectIsAFailure(status: Int) async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 \(status) No\r\nContent-Length: 0\r\n\r\n")])
        defer { server.stop() }
        try await withEngine { engine in
            let failure = try #require(await engine.exchange(request("https://o.invalid/", server)).failure)
            #expect(failure.kind == .cannotConnect && failure.cause == .proxyRefused(status: status))
        }
    }

    /// The proxy may be waiting for the server.
    @Test func aTunnelThatIsNotOpenedInTimeIsNoUnreachableProxy() async throws {
        let server = ScriptedServer([.hold])
        defer { server.stop() }
        try await withEngine { engine in
            for kind in [ProxyRequest.Kind.http, .https, .socks5h] {
                var request = request("https://o.invalid/", server, kind)
                request.options.connectTimeout = .milliseconds(300)
                let failure = try #require(await engine.exchange(request).failure)
                let expected: TransferFailure.Cause? =
                    switch kind {
                    case .http: .proxyRefused(status: nil)
                    case .https: .proxyUnreachable
                    case .socks5h: nil
                    }
                #expect(failure.kind == .timedOut && failure.cause == expected, "\(kind)")
            }
        }
    }

    @Test func aTunnelThatClosesIsATLSFailureOrATimeout() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nX: proxy\r\n\r\n"), .close])
        defer { server.stop() }
        try await withEngine { engine in
            var request = request("https://o.invalid/", server)
            request.timeout = .seconds(5)
            let failure = try #require(await engine.exchange(request).failure)
            #expect(failure.kind == .tlsFailed || failure.kind == .timedOut)
        }
    }

    @Test(arguments: [ProxyRequest.Kind.http, .https, .socks5h])
    func anAbsentProxyIsItsOwnFailure(kind: ProxyRequest.Kind) async throws {
        try await withEngine { engine in
            for url in ["http://127.0.0.1:2/", "https://127.0.0.1:2/"] {
                var absent = TransfersTests.request(url)
                absent.proxy = ProxyRequest(kind: kind, host: "127.0.0.1", port: 1)
                let failure = try #require(await engine.exchange(absent).failure)
                #expect(failure.kind == .cannotConnect && failure.cause == .proxyUnreachable)
                absent.proxy = ProxyRequest(kind: kind, host: "p.invalid", port: 1)
                #expect(await engine.exchange(absent).failure?.cause == .proxyUnreachable)
            }
        }
    }

    @Test func aProxyThatDoesNotSpeakTLSIsItsOwnFailure() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 400 No\r\n\r\n")])
        defer { server.stop() }
        try await withEngine { engine in
            var request = request("https://o.invalid/", server, .https)
            request.timeout = .seconds(2)
            let failure = try #require(await engine.exchange(request).failure)
            #expect(failure.kind == .timedOut || failure.cause == .proxyTLSFailed)
        }
    }

    @Test(arguments: [(256, 1), (1, 256)])
    func aLoginThatSOCKSCannotCarryIsNotSent(user: Int, password: Int) async throws {
        let server = ScriptedServer([.hold])
        defer { server.stop() }
        try await withEngine { engine in
            var request = request("http://o.invalid/", server, .socks5h)
            request.proxy?.user = secret(String(repeating: "u", count: user))
            request.proxy?.password = secret(String(repeating: "p", count: password))
            #expect(await engine.exchange(request).failure?.cause == .proxyLoginTooLong)
        }
        #expect(server.heard.isEmpty)
    }
}
