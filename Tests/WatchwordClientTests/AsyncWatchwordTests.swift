import Foundation
import JSONText
import Synchronization
import TestServers
import Testing
import WatchwordAsync
import WatchwordClient
import WatchwordProtocol

@Suite(.timed, .timeLimit(.minutes(1))) struct AsyncWatchwordTests {
    private static let welcome = #"{"jsonrpc":"2.0","id":1,"result":{}}"# + "\n"

    private static func challenge(_ id: Int, of fetch: Int, _ url: String = "http://h/") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"auth/challenge","params":{"url":"\#(url)","handler":"fetch","#
            + #""requestId":\#(fetch),"protectionSpace":{"realm":"Staff","authenticationMethod":"httpBasic"}}}"# + "\n"
    }

    private static func page(_ id: Int, _ body: String) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"result":{"status":200,"headers":[["A","1"]],"#
            + #""body":{"type":"string","value":"\#(body)"}}}"# + "\n"
    }

    private static func handle(_ id: Int, _ fetchID: String) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"result":{"status":200,"headers":[],"#
            + #""body":{"type":"handle","fetchId":"\#(fetchID)"}}}"# + "\n"
    }

    private static func part(_ id: Int, _ value: String, isAtEnd: Bool) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"result":{"data":{"type":"string","value":"\#(value)"},"offsetBytes":0,"eof":\#(isAtEnd)}}"#
            + "\n"
    }

    private static func fails(_ id: Int) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"error":{"code":1001,"message":"cannot connect","data":{"kind":"cannotConnect"}}}"#
            + "\n"
    }

    /// A broker that sends the bytes of `replies` after each received message, in turn. Passes on the received messages.
    private final class Broker: Sendable {
        let messages: AsyncStream<String>
        let scripted: ScriptedPeer

        init(_ replies: [String?]) {
            let (messages, continuation) = AsyncStream.makeStream(of: String.self)
            let count = Mutex(0)
            self.messages = messages
            scripted = ScriptedPeer { line in
                let number = count.withLock { count in
                    count += 1
                    return count - 1
                }
                continuation.yield(line)
                return number < replies.count ? replies[number] : ""
            }
        }

        /// Returns the first message that contains `text`.
        func message(with text: String) async -> String {
            for await message in messages where message.contains(text) { return message }
            return ""
        }
    }

    private static let password: Watchword.Answer = .login(
        user: "bob", password: Array("pw".utf8).withUnsafeBytes { Secret(copying: $0) })

    @Test func aChallengeIsAnsweredByTheHandlerOfItsFetch() async throws {
        let broker = Broker([
            Self.welcome, "", Self.challenge(7, of: 3, "http://h/b"), Self.page(3, "second") + Self.challenge(8, of: 2),
            Self.page(2, "first"),
        ])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        let first = Task { try await client.fetch("http://h/a") { _ in .cancel } }
        #expect(await broker.message(with: "http://h/a").contains(#""handler":{"delivery":"request""#))
        let second = try await client.fetch("http://h/b") { challenge in
            #expect(challenge.url == "http://h/b" && challenge.realm == "Staff")
            return Self.password
        }
        #expect(second.body == Array("second".utf8) && second.headers.map(\.value) == ["1"])
        #expect(try await first.value.body == Array("first".utf8))
        #expect(await broker.message(with: #""id":7"#).contains(#""password":"pw""#))
        #expect(await broker.message(with: #""id":8"#).contains(#""action":"cancel""#))
    }

    @Test func aHandlerThatThrowsCancelsTheFetch() async throws {
        let broker = Broker([Self.welcome, Self.challenge(7, of: 2), Self.fails(2)])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        await #expect(throws: ClientFailure.self) {
            try await client.fetch("http://h/") { _ in throw CancellationError() }
        }
        #expect(await broker.message(with: #""id":7"#).contains(#""action":"cancel""#))
    }

    @Test func withoutAHandlerNoneIsDeclared() async throws {
        let broker = Broker([Self.welcome, Self.page(2, "x")])
        let client = try await AsyncWatchword(name: "its name", socket: broker.scripted.location.path)
        _ = try await client.fetch("http://h/")
        let hello = await broker.message(with: "initialize")
        #expect(hello.contains("its name") && hello.contains(WatchwordVersion.current) && !hello.contains("delivery"))
        #expect(await !broker.message(with: "fetch/run").contains("handler"))
    }

    @Test func cancellingATaskCancelsItsCallOnly() async throws {
        let broker = Broker([Self.welcome, "", "", Self.page(2, "other")])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        async let other = client.fetch("http://h/other")
        _ = await broker.message(with: "other")
        let cancelled = Task { try await client.fetch("http://h/") }
        _ = await broker.message(with: #""id":3"#)
        cancelled.cancel()
        #expect(await broker.message(with: "$/cancelRequest").contains(#""params":{"id":3}"#))
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try await other.body == Array("other".utf8))
    }

    @Test func aTaskThatWasCancelledBeforeSendsNothing() async throws {
        let broker = Broker([Self.welcome, Self.page(2, "x")])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await client.fetch("http://h/cancelled")
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        _ = try await client.fetch("http://h/next")
        #expect(await broker.message(with: "http").contains("next"))
    }

    @Test func aReplyToACancelledCallIsDiscarded() async throws {
        let broker = Broker([Self.welcome, "", Self.handle(2, "f9")])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        let cancelled = Task { try await client.fetch("http://h/") }
        _ = await broker.message(with: "http://h/")
        cancelled.cancel()
        #expect(await broker.message(with: "fetch/cancel").contains("f9"))
    }

    @Test func aWithdrawnChallengeEndsItsHandlerWithoutAnAnswer() async throws {
        let withdraw = #"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}"# + "\n"
        let broker = Broker([
            Self.welcome, Self.challenge(7, of: 2), withdraw + Self.page(2, "x") + Self.page(3, ""), Self.page(4, "y"),
        ])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        async let page = client.fetch("http://h/") { _ in
            continuation.yield()
            // Ends only with an error, when the task is cancelled.
            do { try await Task.sleep(for: .seconds(600)) } catch { continuation.yield() }
            return Self.password
        }
        var events = asked.makeAsyncIterator()
        await events.next()
        _ = try await client.call(FetchList())
        await events.next()
        #expect(try await page.body == Array("x".utf8))
        _ = try await client.fetch("http://h/last")
        var sent: [String] = []
        for await message in broker.messages {
            sent.append(message)
            if message.contains("last") { break }
        }
        #expect(!sent.contains { $0.contains(#""action""#) })
    }

    @Test func aBodyIsReadInParts() async throws {
        let broker = Broker([
            Self.welcome, Self.handle(2, "f1"), Self.part(3, "ab", isAtEnd: false), Self.part(4, "c", isAtEnd: true),
            Self.handle(5, "f2"), Self.part(6, "de", isAtEnd: false), Self.part(7, "", isAtEnd: true),
        ])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        let stream = try await client.stream(FetchRunParams(url: "http://h/"))
        var parts: [String] = []
        for try await part in stream.body { parts.append(String(decoding: part, as: UTF8.self)) }
        #expect(parts == ["ab", "c"] && stream.status == 200)
        #expect(try await client.fetch("http://h/").body == Array("de".utf8))
    }

    @Test func aBodyThatIsNotReadToItsEndIsCancelled() async throws {
        let broker = Broker([Self.welcome, Self.handle(2, "f1"), Self.part(3, "ab", isAtEnd: false)])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        func readFirst() async throws {
            let stream = try await client.stream(FetchRunParams(url: "http://h/"))
            for try await part in stream.body {
                #expect(part == Array("ab".utf8))
                return
            }
        }
        try await readFirst()
        #expect(await broker.message(with: "fetch/cancel").contains("f1"))
    }

    @Test func theEndOfTheConnectionEndsAllCalls() async throws {
        let broker = Broker([Self.welcome, "", nil])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        let first = Task { try await client.fetch("http://h/1") }
        _ = await broker.message(with: "h/1")
        await #expect(throws: ClientFailure.connectionLost) { try await client.fetch("http://h/2") }
        await #expect(throws: ClientFailure.connectionLost) { try await first.value }
        await #expect(throws: ClientFailure.connectionLost) { try await client.fetch("http://h/3") }
    }

    @Test func theLastReferenceClosesTheConnection() async throws {
        let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
        /// Ends the stream with the thread of the peer, which holds the last reference.
        final class Sentinel: Sendable {
            let end: @Sendable () -> Void
            init(_ end: @escaping @Sendable () -> Void) { self.end = end }
            deinit { end() }
        }
        func connect() async throws {
            let sentinel = Sentinel { continuation.finish() }
            let peer = ScriptedPeer { _ in withExtendedLifetime(sentinel) { Self.welcome } }
            _ = try await AsyncWatchword(socket: peer.location.path)
        }
        try await connect()
        for await _ in ended {}
    }

    @Test func otherRequestsAreRefused() async throws {
        let request = #"{"jsonrpc":"2.0","id":7,"method":"auth/confirm","params":{}}"# + "\n"
        let broker = Broker([Self.welcome, request + Self.challenge(8, of: 99) + Self.page(2, "x")])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path)
        _ = try await client.fetch("http://h/") { _ in Self.password }
        #expect(await broker.message(with: #""id":7"#).contains("-32601"))
        #expect(await broker.message(with: #""id":8"#).contains("-32601"))
    }

    @Test func anOutcomeIsReportedBeforeTheResult() async throws {
        let resolved =
            #"{"jsonrpc":"2.0","method":"auth/resolved","params":{"challengeId":"c","outcome":"accepted"}}"# + "\n"
        let broker = Broker([Self.welcome, Self.challenge(7, of: 2), resolved + Self.page(2, "x")])
        let outcomes = Mutex<[String?]>([])
        let client = try await AsyncWatchword(socket: broker.scripted.location.path) { outcome in
            outcomes.withLock { $0.append(outcome["outcome"]?.string) }
        }
        _ = try await client.fetch("http://h/") { _ in Self.password }
        #expect(outcomes.withLock { $0 } == ["accepted"])
    }
}
