import Foundation
import Synchronization
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Logins with Kerberos tickets, with a real KDC.
@Suite(.serialized, .timed, .realServers) struct NegotiateTests {
    private static let realm = Result { try KerberosRealm.start() }

    init() throws {
        try Self.realm.get()
        KerberosRealm.logIn("alice")
    }

    private func request(
        _ server: ScriptedServer, host: String = "localhost", _ identity: ConnectionIdentity = .number(1)
    ) -> TransferRequest {
        var request = TransfersTests.request("http://\(host):\(server.port)/")
        request.identity = identity
        request.handshake = Handshake(scheme: .negotiate, target: .origin)
        return request
    }

    private static func token(_ heard: String, field: String = "Authorization") -> Data? {
        heard.split(separator: "\r\n").last { $0.hasPrefix("\(field): Negotiate ") }
            .flatMap { Data(base64Encoded: String($0.dropFirst("\(field): Negotiate ".count))) }
    }

    private static func response(_ proof: Data?) -> String {
        let field = proof.map { "WWW-Authenticate: Negotiate \($0.base64EncodedString())\r\n" } ?? ""
        return "HTTP/1.1 200 OK\r\n\(field)Content-Length: 2\r\n\r\nok"
    }

    @Test("Rules N5 and N11: the ticket is for the host of the URL and the server's answer is verified")
    func theTicketIsForTheHostAndTheAnswerProven() async throws {
        let users = Mutex<[String?]>([])
        let accept = ScriptedServer.Reply.answer { heard in
            let login = Self.token(heard).flatMap(acceptNegotiate)
            users.withLock { $0.append(login?.user) }
            return Self.response(login?.proof)
        }
        let server = ScriptedServer([accept, accept, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 { #expect(await engine.exchange(request(server)).text == "ok") }
            #expect(engine.figures.connectionsOpened == 1)
        }
        #expect(users.withLock { $0 } == ["alice@WATCH.TEST", "alice@WATCH.TEST"])
        #expect(server.heard.count == 1 && server.heard[0].hasPrefix("GET / HTTP/1.1\r\n"))
    }

    @Test("Rule N11: a wrong final token fails the fetch")
    func aWrongProofIsAFailure() async throws {
        let other = Mutex<Data?>(nil)
        let server = ScriptedServer([
            .answer { heard in
                other.withLock { $0 = Self.token(heard).flatMap(acceptNegotiate)?.proof }
                return Self.response(Data("no proof".utf8))
            },
            // This is the proof for another login of the same user.
            .answer { _ in Self.response(other.withLock { $0 }) }, .answer { _ in Self.response(nil) }, .hold,
        ])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 { #expect(await engine.exchange(request(server)).failure?.cause == .serverProofWrong) }
            #expect(await engine.exchange(request(server)).text == "ok")
        }
    }

    @Test("Rule N6: tickets are delegated only where the request allows it", arguments: [false, true])
    func ticketsAreDelegatedOnlyWhereTheRequestAllowsIt(delegates: Bool) async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            var request = request(server)
            request.handshake?.delegates = delegates
            #expect(await engine.exchange(request).text == "ok")
        }
        let login = try #require(Self.token(server.heard[0]).flatMap(acceptNegotiate))
        #expect(login.isDelegated == delegates)
    }

    @Test("Rule N7: NTLM is recognised inside a Negotiate token")
    func ntlmIsRecognisedInsideANegotiateToken() {
        // The token that libcurl sends without a ticket, when gss-ntlmssp is installed.
        let disguised =
            "YEgGBisGAQUFAqA+MDygDjAMBgorBgEEAYI3AgIKoioEKE5UTE1TU1AAAQAAABeCCOIAAAAAAAAAAAAAAAAAAAAABgIAAAAAAA8="
        let offered = [0x60, 0x0A, 0x2B, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0A] as [UInt8]
        let tokens: [([UInt8], Bool)] = [
            (Array(Data(base64Encoded: disguised) ?? Data()), true), (offered, true), (Array("NTLMSSP\0".utf8), true),
            (Array(offered.dropLast()), false), (Array("NTLMSSP".utf8), false), ([], false),
        ]
        for (token, holds) in tokens { #expect(token.withUnsafeBytes { $0.holdsNTLM } == holds) }
    }

    @Test func aRefusalIsAResponse() async throws {
        let server = ScriptedServer([
            .bytes("HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 3\r\n\r\nnot")
        ])
        defer { server.stop() }
        try await withEngine { engine in
            let response = try await engine.exchange(request(server)).get()
            #expect(response.status == 401 && response.body == Array("not".utf8))
        }
        #expect(server.heard[0].split(separator: "\r\n\r\n").count == 1)
    }

    @Test func aProxyGetsATicketOfItsOwn() async throws {
        let proxy = ScriptedServer([.bytes("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")])
        defer { proxy.stop() }
        for url in ["http://o.invalid/", "https://o.invalid/"] {
            try await withEngine { engine in
                var request = TransfersTests.request(url, authorization: "Bearer origin")
                request.identity = .number(1)
                request.proxy = ProxyRequest(kind: .http, host: "localhost", port: proxy.port)
                request.handshake = Handshake(scheme: .negotiate, target: .proxy)
                _ = await engine.exchange(request)
            }
        }
        #expect(proxy.heard.count == 2 && proxy.heard[1].hasPrefix("CONNECT o.invalid:443 "))
        for heard in proxy.heard {
            let login = Self.token(heard, field: "Proxy-Authorization").flatMap(acceptNegotiate)
            #expect(login?.user == "alice@WATCH.TEST")
            #expect(!heard.contains("\r\nAuthorization: Negotiate"))
        }
    }

    /// There is no principal for 127.0.0.1, and a user without a ticket has none for `localhost` either.
    @Test(arguments: [("127.0.0.1", "alice"), ("localhost", "nobody")])
    func withoutATicketNothingIsSent(host: String, user: String) async throws {
        KerberosRealm.logIn(user)
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            let failure = try #require(await engine.exchange(request(server, host: host)).failure)
            #expect(failure.cause == .noTicket && failure.detail.contains("kinit"))
        }
        #expect(server.heard.isEmpty)
    }

    /// MIT's library waits for 54 seconds in one call. Its socket is open meanwhile, which shows that nothing has waited for it.
    @Test func aKDCThatDoesNotAnswerDelaysNoOtherTransfer() async throws {
        let server = ScriptedServer([okay, .hold])
        defer { server.stop() }
        let engine = try RemoteEngine()
        let ends = Mutex<[TransferFailure.Kind?]>([])
        let stuck = (0..<3).map { number in
            var request = request(server, host: "stuck.test", .number(number % 2))
            request.timeout = .seconds(number == 2 ? 3 : 600)
            return engine.start(request) { outcome in ends.withLock { $0.append(outcome.failureKind) } }
        }
        // Other transfers continue: without identity, and with another one.
        #expect(await engine.exchange(TransfersTests.request(server.url)).text == "ok")
        let accept = ScriptedServer([okay])
        defer { accept.stop() }
        #expect(await engine.exchange(request(accept, .number(7))).text == "ok")
        try await until { KerberosRealm.isWaitingForSilentKDC }
        engine.cancel(stuck[0])
        try await until { ends.withLock { $0.contains(.cancelled) } }
        // The timeout of the transfer applies, although its thread hangs.
        try await until { ends.withLock { $0.count } == 2 }
        #expect(engine.figures.running == 1)
        engine.shutDown()
        try await until { KerberosRealm.isWaitingForSilentKDC }
        #expect(ends.withLock { $0.count { $0 == .cancelled } } == 2)
        #expect(ends.withLock { $0.count { $0 == .timedOut } } == 1)
    }
}
