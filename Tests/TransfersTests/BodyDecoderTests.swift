import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Which content codings are decoded, and which bodies are malformed.
@Suite(.timed) struct BodyDecoderTests {
    private static let hello: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 0, 0, 246, 249, 129, 237, 6, 0, 0, 0,
    ]
    private static let world: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 43, 207, 47, 202, 73, 1, 0, 67, 17, 119, 58, 5, 0, 0, 0,
    ]
    private static let zlib: [UInt8] = [120, 156, 203, 72, 205, 201, 201, 7, 0, 6, 44, 2, 21]
    private static let bare: [UInt8] = [203, 72, 205, 201, 201, 7, 0]

    private static let whole: [(BodyDecoder.Coding, [UInt8], String)] = [
        (.gzip, hello, "hello "), (.gzip, hello + world, "hello world"),
        (.gzip, hello + hello + world, "hello hello world"),
        (.deflate, zlib, "hello"), (.deflate, bare, "hello"), (.gzip, [], ""), (.deflate, [], ""),
    ]
    private static let broken: [(BodyDecoder.Coding, [UInt8])] = [
        (.gzip, hello + [0]), (.gzip, hello + Array("garbage".utf8)), (.gzip, hello + [0x1F]),
        (.gzip, hello + [0x1F, 0]),
        (.gzip, hello + world.dropLast()), (.gzip, hello.dropLast()), (.gzip, [0x1F]), (.gzip, Array("plain".utf8)),
        (.gzip, hello.dropLast(8) + [1, 2, 3, 4, 6, 0, 0, 0]), (.gzip, zlib), (.deflate, zlib + [0]),
        (.deflate, zlib + zlib),
        (.deflate, zlib.dropLast()), (.deflate, bare.dropLast()), (.deflate, [120]), (.deflate, hello),
    ]

    /// Decodes `bytes` in blocks of `size`. Every part is refused once, as if the reader were slow.
    private func decode(_ coding: BodyDecoder.Coding, _ bytes: [UInt8], size: Int) -> (text: [UInt8], isComplete: Bool)
    {
        let decoder = BodyDecoder(coding)
        var (text, isReady): ([UInt8], Bool) = ([], false)
        for start in stride(from: 0, to: bytes.count, by: size) {
            let block = Array(bytes[start..<min(start + size, bytes.count)])
            var recorded = CurlTransfer.Recorded.none
            while recorded == .none {
                recorded = block.withUnsafeBytes { block in
                    decoder.decode(block) { part in
                        defer { isReady.toggle() }
                        guard isReady else { return .none }
                        text += part
                        return .all
                    }
                }
            }
        }
        return (text, decoder.isComplete)
    }

    @Test(arguments: whole) func membersAreDecodedInBlocksOfAnySize(
        coding: BodyDecoder.Coding, bytes: [UInt8], text: String
    ) {
        for size in [1, 2, 7, 1000] {
            let (found, isComplete) = decode(coding, bytes, size: size)
            #expect(found == Array(text.utf8) && isComplete)
        }
    }

    @Test(arguments: broken) func whatIsCutOrFollowedByGarbageIsBroken(coding: BodyDecoder.Coding, bytes: [UInt8]) {
        for size in [1, 2, 7, 1000] { #expect(!decode(coding, bytes, size: size).isComplete) }
    }

    private func exchange(_ status: String, _ coding: String, _ bytes: [UInt8]) async throws -> TransferPort.Outcome {
        let head = "HTTP/1.1 \(status)\r\nContent-Encoding: \(coding)\r\nContent-Length: \(bytes.count)\r\n\r\n"
        let server = ScriptedServer([.data(head, bytes), .hold])
        defer { server.stop() }
        return try await withEngine { engine in
            var request = request(server.url)
            request.options.decompresses = true
            let outcome = await engine.exchange(request)
            #expect(server.heard[0].contains("\r\nAccept-Encoding: gzip, deflate\r\n"))
            return outcome
        }
    }

    @Test func aResponseIsDecoded() async throws {
        #expect(try await exchange("200 OK", "gzip", Self.hello + Self.world).text == "hello world")
        #expect(try await exchange("200 OK", "deflate", Self.bare).text == "hello")
        #expect(try await exchange("200 OK", "identity", Self.bare).get().body == Self.bare)
    }

    @Test(arguments: [("gzip", hello + [0]), ("gzip", Array(hello.dropLast())), ("br", hello), ("gzip, gzip", hello)])
    func aResponseThatCannotBeDecodedIsMalformed(coding: String, bytes: [UInt8]) async throws {
        let failure = try #require(try await exchange("200 OK", coding, bytes).failure)
        #expect(failure.kind == .malformedResponse && failure.wireCause == .badContentCoding)
        for status in ["401 No\r\nWWW-Authenticate: Basic", "302 Go\r\nLocation: /"] {
            let response = try await exchange(status, coding, bytes).get()
            #expect(response.bodyFailure?.kind == .malformedResponse)
            #expect(response.bodyFailure?.wireCause == .badContentCoding)
        }
    }
}
