import Foundation
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// A login of the connection to the proxy, and within its tunnel one of the connection to the origin.
@Suite(.timed) struct ProxyHandshakeTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)

    private func login(_ target: Handshake.Target, _ user: ExactText) -> Handshake {
        Handshake(scheme: .ntlm, target: target, user: user, domain: "DOM", password: secret("\(user)-password"))
    }

    private func request(_ url: String, _ proxy: ScriptedServer) -> TransferRequest {
        var request = TransfersTests.request(url)
        request.identity = .number(1)
        request.proxy = ProxyRequest(kind: .http, host: "127.0.0.1", port: proxy.port)
        request.handshake = login(.origin, "sam")
        request.proxyHandshake = login(.proxy, "pat")
        return request
    }

    /// Returns the numbers of the messages, and the user name in the last one.
    private func told(_ heard: String, _ field: String) -> [String] {
        heard.split(separator: "\r\n").filter { $0.hasPrefix("\(field): NTLM ") }.map { line in
            let bytes = Data(base64Encoded: String(line.dropFirst("\(field): NTLM ".count))) ?? Data()
            let text = String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self)
            let names = ["sam", "pat"].filter { text.contains($0.uppercased()) || text.contains($0) }
            return "\(bytes.count > 8 ? bytes[8] : 0)\(names.joined())"
        }
    }

    @Test("Rules R15, L13 and N8: proxy and server are logged in to with their own credentials")
    func proxyAndServerAreLoggedInToWithTheirOwnCredentials() async throws {
        let server = TLSServer(
            Self.leaf, TLSServer.Options(firstAnswer: NTLMTests.head("WWW-Authenticate", "401 Who")))
        let proxy = ScriptedServer(
            [.bytes(NTLMTests.head("Proxy-Authenticate", "407 Who")), .tunnel(server.port)])
        defer {
            server.stop()
            proxy.stop()
        }
        try await withEngine(trusting: Self.authority) { engine in
            let response = try await engine.exchange(request("https://127.0.0.1:\(server.port)/", proxy)).get()
            #expect(response.status == 200 && response.body == Array("ok".utf8))
        }
        #expect(told(proxy.heard[0], "Proxy-Authorization") == ["1", "3pat"])
        #expect(told(server.heard[0], "Authorization") == ["1", "3sam"])
        #expect(!proxy.heard[0].contains("\r\nAuthorization") && !server.heard[0].contains("Proxy-Authorization"))
    }

    @Test func aMisplacedHandshakeIsAnInternalError() async throws {
        let proxy = ScriptedServer([okay])
        defer { proxy.stop() }
        var requests = Array(repeating: request("http://127.0.0.1:2/", proxy), count: 4)
        requests[0].proxyHandshake?.target = .origin
        requests[1].handshake?.target = .proxy
        requests[2].proxy?.authorization = secret("Basic eDp5")
        requests[3].identity = .none
        try await withEngine { engine in
            for request in requests { #expect(await engine.exchange(request).failureKind == .internalError) }
        }
        #expect(proxy.heard.isEmpty)
    }
}
