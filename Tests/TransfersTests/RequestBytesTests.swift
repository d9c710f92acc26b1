import Glibc
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// The bytes of requests.
@Suite(.timed) struct RequestBytesTests {
    private func sent(_ make: (String) -> TransferRequest) async throws -> String {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        let outcome = try await withEngine { await $0.exchange(make(server.url)) }
        _ = try outcome.get()
        return server.heard[0].replacing("127.0.0.1:\(server.port)", with: "HOST")
    }

    @Test("Rule L6: a GET sends the default header fields and no others")
    func getSendsTheDefaultFieldsAndNoOthers() async throws {
        let head = try await sent { request("\($0)/a?b=c") }
        #expect(head == "GET /a?b=c HTTP/1.1\r\nHost: HOST\r\nUser-Agent: watchword\r\nAccept: */*\r\n\r\n")
    }

    @Test(arguments: ["/\u{e9}", "/?", "/a/../b?{|}", "/%7euser/^`<>", "/?\u{20ac}"])
    func theTargetIsSentByteForByte(target: String) async throws {
        let head = try await sent { base in
            var request = request(base)
            request.url = kept(base + target)
            return request
        }
        #expect(head.hasPrefix("GET \(target) HTTP/1.1\r\nHost: HOST\r\n"))
        let forwarded = try await sent { base in
            var request = request(base)
            let place = request.url.origin
            request.url = kept("http://server.example" + target)
            request.proxy = ProxyRequest(kind: .http, host: place.host.string, port: place.port)
            return request
        }
        #expect(forwarded.hasPrefix("GET http://server.example\(target) HTTP/1.1\r\nHost: server.example\r\n"))
    }

    private func kept(_ text: String) -> FetchURL {
        guard let url = try? FetchURL(text, keepsTarget: true) else { preconditionFailure("a test asks for \(text)") }
        return url
    }

    @Test func authorizationIsSentOnceAndAsItIs() async throws {
        let head = try await sent { request($0, authorization: "Basic Ym9iOnB3") }
        #expect(
            head.split(separator: "\r\n").filter { $0.hasPrefix("Authorization") } == ["Authorization: Basic Ym9iOnB3"])
    }

    @Test func fieldsOfTheClientReplaceTheDefaults() async throws {
        let fields = [HeaderField("User-Agent", "x/1"), HeaderField("Accept", "a/b"), HeaderField("X-Empty", "")]
        let head = try await sent { request($0, headers: fields) }
        #expect(head == "GET / HTTP/1.1\r\nHost: HOST\r\nUser-Agent: x/1\r\nAccept: a/b\r\nX-Empty:\r\n\r\n")
    }

    @Test(arguments: ["POST", "PUT", "PATCH"])
    func methodsWithABodySendItsLengthAndNoTypeOfTheirOwn(method: String) async throws {
        let full = try await sent { request($0, method, body: "a=b") }
        #expect(full.hasPrefix("\(method) / HTTP/1.1\r\n"))
        #expect(full.contains("\r\nContent-Length: 3\r\n"))
        #expect(full.hasSuffix("\r\n\r\na=b"))
        #expect(!full.contains("Content-Type") && !full.contains("Expect"))
        let empty = try await sent { request($0, method) }
        #expect(empty.contains("\r\nContent-Length: 0\r\n"))
        #expect(!empty.contains("Content-Type"))
    }

    @Test func otherMethodsGoOutAsTheyAre() async throws {
        for (method, body) in [("DELETE", nil), ("GET", "q"), ("PROPFIND", "q")] {
            let text = try await sent { request($0, method, body: body) }
            #expect(text.hasPrefix("\(method) / HTTP/1.1\r\nHost: HOST\r\n"))
            #expect(text.hasSuffix("\r\n\r\n\(body ?? "")"))
        }
    }

    @Test func bodiesUpToALimitDoNotWaitForAContinue() async throws {
        let body = String(repeating: "x", count: TransferRequest.announcedBodyBytes)
        let text = try await sent { request($0, "POST", body: body) }
        let isAnnounced = text.contains("Expect")
        #expect(!isAnnounced)
        #expect(text.utf8.count > TransferRequest.announcedBodyBytes)
    }

    @Test func theChallengeOfALargeBodyComesBeforeItsBytes() async throws {
        let body = String(repeating: "x", count: TransferRequest.announcedBodyBytes + 1)
        let server = ScriptedServer([
            .bytes(
                "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=r\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        ])
        defer { server.stop() }
        let outcome = try await withEngine { await $0.exchange(request(server.url, "POST", body: body)) }
        #expect(try outcome.get().status == 401)
        let heard = String(server.heard[0].prefix(1000))
        #expect(heard.contains("\r\nExpect: 100-continue\r\n"))
        #expect(heard.hasSuffix("\r\n\r\n"))
    }

    @Test func headGetsNoBody() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"), okay])
        defer { server.stop() }
        let outcome = try await withEngine { await $0.exchange(request(server.url, "HEAD")) }
        #expect(try outcome.get().body.isEmpty)
        #expect(server.heard[0].hasPrefix("HEAD / HTTP/1.1\r\n"))
    }

    @Test(arguments: ["a\r\nEvil: 1", "a\nb", "a\u{0}b"])
    func aLineBreakInAHeaderSendsNothing(value: String) async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            let field = await engine.exchange(request(server.url, headers: [HeaderField("X", value)]))
            #expect(field.failureKind == .internalError)
            let authorization = await engine.exchange(request(server.url, authorization: value))
            #expect(authorization.failureKind == .internalError)
        }
        #expect(server.heard.isEmpty)
    }

    /// The test runs in its own process, because many threads read the environment of this one.
    @Test("Rule L6: the proxy of the environment is ignored") func theEnvironmentsProxyIsIgnored() async {
        await #expect(processExitsWith: .success) {
            for name in ["http_proxy", "all_proxy", "HTTP_PROXY"] { setenv(name, "http://127.0.0.1:1/", 1) }
            let head = try await RequestBytesTests().sent { request($0) }
            exit(head.hasPrefix("GET / HTTP/1.1\r\n") ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }
}
