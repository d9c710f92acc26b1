import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Responses: complete and bounded, with a separate failure for each violation.
@Suite(.timed) struct ResponseTests {
    private func outcome(
        of replies: [ScriptedServer.Reply], maxBodyBytes: Int = 1 << 20, timeout: Duration = .seconds(60)
    ) async throws -> TransferPort.Outcome {
        let server = ScriptedServer(replies)
        defer { server.stop() }
        return try await withEngine {
            await $0.exchange(request(server.url, timeout: timeout, maxBodyBytes: maxBodyBytes))
        }
    }

    /// With other codings, one kilobyte may expand to gigabytes.
    @Test(arguments: [
        ("gzip", true), ("Deflate", true), ("x-gzip", true), ("identity, gzip", true), ("", true),
        ("gzip, gzip", false),
        ("gzip\r\nContent-Encoding: deflate", false), ("br", false), ("gzip, br", false), ("zstd", false),
    ])
    func onlyOneCompactContentCodingIsSafe(codings: String, isModest: Bool) {
        var headers = ResponseHeaders()
        for line in ["HTTP/1.1 200 OK", "Content-Encoding: \(codings)"].flatMap({ $0.split(separator: "\r\n") }) {
            let isTaken = Array("\(line)\r\n".utf8).withUnsafeBytes { headers.append($0) }
            #expect(isTaken)
        }
        #expect(headers.hasSafeContentCoding == isModest)
    }

    /// RFC 9110 section 15.2.2: the bytes after it belong to another protocol, which the request did not ask for.
    @Test(arguments: ["raw bytes", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ""])
    func anUnrequestedSwitchIsNotAResponse(rest: String) async throws {
        let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n\(rest)"
        let server = ScriptedServer([.bytes(switching), .hold], [okay])
        defer { server.stop() }
        try await withEngine { engine in
            let failure = try #require(await engine.exchange(request(server.url)).failure)
            #expect(failure.kind == .malformedResponse && failure.detail.contains("101 Switching Protocols"))
            // The connection is not used again.
            #expect(await engine.exchange(request(server.url)).text == "ok")
            #expect(engine.figures.connectionsOpened == 2)
        }
    }

    @Test func statusFieldsAndBody() async throws {
        let response = try await outcome(of: [
            .bytes("HTTP/1.1 404 Not Here\r\nX: a\r\nx:  b \r\nEmpty:\r\nContent-Length: 4\r\n\r\nbody")
        ]).get()
        #expect(response.status == 404)
        #expect(response.httpVersion == "1.1")
        #expect(
            response.headers == [
                HeaderField("X", "a"), HeaderField("x", "b"), HeaderField("Empty", ""),
                HeaderField("Content-Length", "4"),
            ])
        #expect(response.body == Array("body".utf8))
    }

    @Test(arguments: [
        ("HTTP/1.1 404 Not Here", "Not Here"), ("HTTP/1.1 200 ", ""), ("HTTP/1.1 200", ""), ("HTTP/2 200", ""),
        ("HTTP/1.1 200 a\u{1B}[1mb", "a[1mb"), ("HTTP/1.1 200 caf\u{E9}", "caf\u{E9}"),
    ])
    func theReasonPhraseIsReadWithoutControlCharacters(line: String, reason: String) {
        var headers = ResponseHeaders()
        let isTaken = Array("\(line)\r\n".utf8).withUnsafeBytes { headers.append($0) }
        #expect(isTaken && headers.reason == reason)
    }

    @Test(arguments: [
        ("", FailureCause.emptyReply), ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", .bodyCutShort),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx", .receiveFailed),
        ("SSH-2.0-OpenSSH_9.2\r\n", .notHTTP), ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab", .malformedHeader),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nab", .malformedHeader),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nab", .bodyCutShort),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nab", .receiveFailed),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\nab", .bodyCutShort),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000000002\r\nab", .receiveFailed),
    ])
    func failureCausesAreDistinguished(text: String, cause: FailureCause) async throws {
        let failure = try #require(try await outcome(of: [.bytes(text)]).failure)
        #expect(failure.wireCause == cause, "\(failure)")
    }

    @Test func interimResponsesAndTrailersAreDropped() async throws {
        let text =
            "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer: t\r\n\r\n"
        let response = try await outcome(of: [.bytes(text)]).get()
        #expect(response.headers.map(\.name) == ["A", "Transfer-Encoding"])
        #expect(response.body == Array("abc".utf8))
    }

    @Test func foldedLinesAreJoinedAndTheirBytesAreKept() async throws {
        let server = ScriptedServer([
            .bytes("HTTP/1.0 200 OK\r\nA: b\r\n  c\r\n\tUTF-8: no\r\nGr\u{FC}n: x\r\n\r\nrest")
        ])
        defer { server.stop() }
        let response = try await withEngine { try await $0.exchange(request(server.url)).get() }
        #expect(response.httpVersion == "1.0")
        #expect(response.headers.first == HeaderField("A", "b c UTF-8: no"))
        var headers = ResponseHeaders()
        for line: [UInt8] in [Array("HTTP/1.1 200 OK\r\n".utf8), [0x41, 0x3A, 0xFC, 0x0D, 0x0A]] {
            _ = line.withUnsafeBytes { headers.append($0) }
        }
        #expect(headers.fields.map(\.value.headerBytes) == [[0xFC]])
    }

    @Test(
        "Rule L4: libcurl follows no redirect and answers no challenge", arguments: [301, 302, 303, 307, 308, 401, 407])
    func redirectsAndChallengesAreOnlyReported(status: Int) async throws {
        let server = ScriptedServer([
            .bytes(
                "HTTP/1.1 \(status) X\r\nLocation: /next\r\nWWW-Authenticate: Basic realm=\"r\"\r\nProxy-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
            ), okay,
        ])
        defer { server.stop() }
        let outcome = try await withEngine { await $0.exchange(request(server.url, authorization: "Basic x")) }
        #expect(try outcome.get().status == status)
        #expect(server.heard.count == 1)
        #expect(server.heard[0].split(separator: "GET ").count == 1)
    }

    @Test("Rule L11: bodies are limited")
    func bodiesAreLimited() async throws {
        let announced = ScriptedServer.Reply.bytes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345")
        let open = ScriptedServer.Reply.bytes("HTTP/1.1 200 OK\r\n\r\n12345")
        for reply in [announced, open] {
            #expect(try await outcome(of: [reply], maxBodyBytes: 5).text == "12345")
            #expect(try await outcome(of: [reply], maxBodyBytes: 4).failureKind == .bodyTooLarge)
        }
    }

    /// Intermediate responses are not the result of the fetch.
    @Test(arguments: ["401 X\r\nWWW-Authenticate: Basic", "302 X\r\nLocation: /x"])
    func theBodyLimitExcludesIntermediateResponses(status: String) async throws {
        let reply = ScriptedServer.Reply.bytes("HTTP/1.1 \(status)\r\nContent-Length: 5\r\n\r\n12345")
        #expect(try await outcome(of: [reply], maxBodyBytes: 1).text == "12345")
    }

    @Test(arguments: [
        ("200 X\r\nContent-Length: 2\r\nContent-Length: 3", false), ("200 X\r\nContent-Length: 2, 4", false),
        ("200 X\r\nContent-Length: +2", false), ("200 X\r\nContent-Length: 0x2", false),
        ("200 X\r\nContent-Length: -2", false), ("200 X\r\nContent-Length: 9223372036854775808", false),
        ("200 X\r\nContent-Length: 18446744073709551618", false),
        ("200 X\r\nContent-Length: 99999999999999999999999999999", false),
        ("200 X\r\nTransfer-Encoding: chunked\r\nContent-Length: 9223372036854775808", false),
        ("401 X\r\nWWW-Authenticate: Basic\r\nContent-Length: 9223372036854775808", false),
        ("200 X\r\nContent-Length: 000000000000000000000000000002", true),
        ("200 X\r\nContent-Length: 2,", false), ("200 X\r\nContent-Length: 2 2", false),
        ("200 X\r\nContent-Length:", false),
        ("302 X\r\nContent-Length: 2\r\nLocation: /a\r\nLocation: /b", false),
        ("302 X\r\nContent-Length: 2\r\nLocation: /a\r\nlocation: /a", false),
        ("401 X\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\nContent-Length: 1", false),
        ("200 X\r\nContent-Length: 2", true), ("200 X\r\nContent-Length: 2\r\nContent-Length: 2", true),
        ("200 X\r\nContent-Length: 2, 2", true), ("302 X\r\nContent-Length: 2\r\nLocation:", true),
    ])
    func contradictoryContentLengthOrLocationIsMalformed(head: String, isFine: Bool) async throws {
        let outcome = try await outcome(of: [.bytes("HTTP/1.1 \(head)\r\n\r\nok"), .close])
        #expect(outcome.failureKind == (isFine ? nil : .malformedResponse))
        if isFine { #expect(outcome.text == "ok") }
    }

    /// libcurl has a code of its own for each, and means its caller by some of them.
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 2\r\n\r\nok", FailureCause.malformedHeader),
        ("HTTP/1.1 200 OK\r\n\tA: b\r\nContent-Length: 2\r\n\r\nok", .malformedHeader),
        ("HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\nok", .malformedHeader),
        ("HTTP/1.1 200 OK\r\nA\0: b\r\nContent-Length: 2\r\n\r\nok", .malformedHeader),
        ("HTTP/1.1 103 Early\r\n A: b\r\n\r\n", .malformedHeader),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA\0B: c\r\n\r\n", .malformedHeader),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", .badContentCoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: compress\r\n\r\nok", .badContentCoding),
    ])
    func noResponseIsAnInternalError(text: String, cause: FailureCause) async throws {
        for reply in [ScriptedServer.Reply.bytes(text), .data("HTTP/1.1 100 Continue\r\n\r\n", Array(text.utf8))] {
            let failure = try #require(try await outcome(of: [reply]).failure)
            #expect(failure.kind == .malformedResponse && failure.wireCause == cause, "\(failure)")
        }
    }

    @Test func trailersAreApartFromTheHeader() async throws {
        let text =
            "HTTP/1.1 200 X\r\nA: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nAuthentication-Info: x\r\nB: 2\r\n\r\n"
        let response = try await outcome(of: [.bytes(text)]).get()
        #expect(response.body == Array("ok".utf8))
        #expect(response.headers.map(\.name) == ["A", "Transfer-Encoding"])
        #expect(response.trailers == [HeaderField("Authentication-Info", "x"), HeaderField("B", "2")])
    }

    @Test("Rule L11: header sections are limited")
    func headersAreLimited() async throws {
        let line = "X: \(String(repeating: "y", count: 1000))\r\n"
        let fits = String(repeating: line, count: 200)
        let response = try await outcome(of: [.bytes("HTTP/1.1 200 OK\r\n\(fits)Content-Length: 0\r\n\r\n")]).get()
        #expect(response.headers.count == 201)
        let tooMany = String(repeating: line, count: 400)
        let failure = try await outcome(of: [.bytes("HTTP/1.1 200 OK\r\n\(tooMany)Content-Length: 0\r\n\r\n")])
        #expect(failure.failureKind == .headersTooLarge)
    }

    @Test(arguments: [
        (ScriptedServer.Reply.close, TransferFailure.Kind.connectionLost),
        (.bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), .connectionLost),
        (.bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), .connectionLost),
        (.bytes("SSH-2.0-OpenSSH_9\r\n"), .malformedResponse),
    ])
    func malformedResponsesAreFailures(reply: ScriptedServer.Reply, kind: TransferFailure.Kind) async throws {
        #expect(try await outcome(of: [reply]).failureKind == kind)
    }

    @Test("Rule L11: a silent server times out")
    func aServerThatIsSilentTimesOut() async throws {
        #expect(try await outcome(of: [.hold], timeout: .milliseconds(150)).failureKind == .timedOut)
    }

    @Test func unreachableServersAreReported() async throws {
        try await withEngine { engine in
            #expect(await engine.exchange(request("http://127.0.0.1:1/")).failureKind == .cannotConnect)
            let unknown = await engine.exchange(request("http://no-such-host.invalid/"))
            #expect(unknown.failureKind == .nameNotResolved)
            guard case .failure(let failure) = unknown else { return }
            #expect(failure.detail.contains("no-such-host.invalid"))
        }
    }
}
