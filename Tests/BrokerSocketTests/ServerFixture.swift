import Broker
import Dispatch
import EventLoop
import Glibc
import Logging
import Synchronization
import Testing
import WatchwordProtocol

@testable import BrokerSocket

/// A folder of mode 0700, which is removed at the end.
final class PrivateFolder {
    let path: String

    init() {
        var template = Array("/tmp/watchword-test.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { preconditionFailure("no temporary folder") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in ["s", "s.lock", "deep/s", "deep/s.lock", "deep", "link"] where unlink("\(path)/\(name)") != 0 {
            rmdir("\(path)/\(name)")
        }
        rmdir(path)
    }

    func location(_ name: String = "s") -> SocketLocation {
        SocketLocation(explicit: "\(path)/\(name)", environment: { _ in nil }, uid: getuid())
    }
}

/// Records the events of the server, and answers received bytes with `answer`.
final class RecordingService: ConnectionService {
    enum Event: Equatable, Sendable {
        case opened(Int)
        case received(Int, String)
        case inputEnded(Int)
        case closed(Int)
    }

    private struct State {
        var last = 0
        var events: [Event] = []
        var mostUnread = 0
        var unread = 0
        var tellings = 0
    }

    private let state = Mutex(State())
    /// Used on the loop only.
    nonisolated(unsafe) private var links: [Int: any ClientLink] = [:]
    private let mayLeave: Int
    private let answer: @Sendable (String) -> [UInt8]?

    /// - Parameter mayLeave: the maximum number of bytes that a client may leave unread.
    init(mayLeave: Int = .max, answer: @escaping @Sendable (String) -> [UInt8]? = { Array($0.utf8) }) {
        self.mayLeave = mayLeave
        self.answer = answer
    }

    var events: [Event] { state.withLock { $0.events } }

    private var reads: [Int] {
        events.compactMap { if case .received(_, let text) = $0 { text.utf8.count } else { nil } }
    }

    var receivedCount: Int { reads.reduce(0, +) }

    var largestRead: Int { reads.max() ?? 0 }

    func connectionOpened(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        let number = state.withLock { state in
            state.last += 1
            state.events.append(.opened(state.last))
            return state.last
        }
        links[number] = link
        return ConnectionID(value: number)
    }

    func received(_ bytes: UnsafeRawBufferPointer, from connection: ConnectionID) {
        let text = String(decoding: bytes, as: UTF8.self)
        state.withLock { $0.events.append(.received(connection.value, text)) }
        let link = links[connection.value]
        if text == "close\n" { link?.close() } else if let answer = answer(text) { link?.send(answer) }
    }

    /// The maximum number of unread bytes so far.
    var mostUnread: Int { state.withLock { $0.mostUnread } }

    /// The number of reports about unread bytes.
    var tellings: Int { state.withLock { $0.tellings } }

    /// The number of bytes that are currently unread.
    var unread: Int { state.withLock { $0.unread } }

    func leftUnread(_ count: Int, _ connection: ConnectionID) {
        state.withLock { state in
            state.mostUnread = max(state.mostUnread, count)
            state.unread = count
            state.tellings += 1
        }
        if count > mayLeave { links[connection.value]?.abandon() }
    }

    func inputEnded(_ connection: ConnectionID) {
        state.withLock { $0.events.append(.inputEnded(connection.value)) }
        links[connection.value]?.send(Array("bye".utf8))
        links[connection.value]?.close()
    }

    func connectionClosed(_ connection: ConnectionID) {
        state.withLock { $0.events.append(.closed(connection.value)) }
    }
}

/// A server with its own event loop and thread.
final class TestServer: Sendable {
    private let thread: LoopThread
    private let server: Mutex<LoopBound<BrokerServer>?>

    init(
        _ service: RecordingService, _ socket: consuming ListeningSocket, policy: PeerPolicy, limits: ServerLimits,
        listening: Listener.Limits, onFailure: @escaping @Sendable (SocketFailure) -> Void
    ) throws {
        let thread = try LoopThread()
        self.thread = thread
        let handover = Mutex<ListeningSocket?>(socket)
        let made = Mutex<Result<LoopBound<BrokerServer>, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        thread.loop.post {
            let result = Result {
                guard let socket = handover.withLock({ $0.take() }) else { throw CancellationError() }
                let server = try BrokerServer(
                    on: thread.loop, socket: socket, socketKind: .main, service: service, policy: policy,
                    limits: limits, listening: listening, counter: ConnectionCounter(),
                    log: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }), onFailure: onFailure)
                return LoopBound(server, to: thread.loop)
            }
            made.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        server = Mutex(try made.withLock { $0 }?.get())
    }

    /// Returns when the server has stopped accepting connections.
    func stop() {
        let done = DispatchSemaphore(value: 0)
        let server = server.withLock { $0 }
        let isPosted = thread.loop.post {
            server?.value.stop()
            done.signal()
        }
        if isPosted { done.wait() }
    }

    func end() {
        stop()
        thread.end()
    }
}

/// Runs `body` with a server.
func withServer(
    _ service: RecordingService, policy: PeerPolicy = PeerPolicy(uid: getuid()), limits: ServerLimits = ServerLimits(),
    _ body: (SocketLocation, TestServer) async throws -> Void
) async throws {
    let folder = PrivateFolder()
    try await withServer(service, ListeningSocket(at: folder.location()), policy: policy, limits: limits) {
        try await body(folder.location(), $0)
    }
}

/// Runs `body` with a server on the given socket.
func withServer(
    _ service: RecordingService, _ socket: consuming ListeningSocket, policy: PeerPolicy = PeerPolicy(uid: getuid()),
    limits: ServerLimits = ServerLimits(), listening: Listener.Limits = Listener.Limits(),
    onFailure: @escaping @Sendable (SocketFailure) -> Void = { Issue.record("\($0)") },
    _ body: (TestServer) async throws -> Void
) async throws {
    let server = try TestServer(
        service, socket, policy: policy, limits: limits, listening: listening, onFailure: onFailure)
    defer { server.end() }
    try await body(server)
}

/// The socket of a client.
final class RawClient {
    let descriptor: Int32

    /// - Parameter waits: whether to wait for room in the kernel's accept queue.
    init(_ location: SocketLocation, waits: Bool = true) throws {
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | (waits ? 0 : SOCK_NONBLOCK.rawValue)
        descriptor = socket(AF_UNIX, Int32(type), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: location.path.utf8) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw Refused() }
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    struct Refused: Error {}

    deinit { Glibc.close(descriptor) }

    func send(_ text: String) {
        _ = text.withCString { Glibc.send(descriptor, $0, text.utf8.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Receives at most `count` bytes. Returns an empty text at the end; a timeout is recorded as an issue.
    func receive(_ count: Int = 4096) -> String {
        var buffer = [UInt8](repeating: 0, count: count)
        let received = recv(descriptor, &buffer, count, 0)
        if received < 0 && errno == EAGAIN { Issue.record("nothing has come in a minute") }
        return received > 0 ? String(decoding: buffer[..<received], as: UTF8.self) : ""
    }
}

/// Waits until `condition` holds, for about a minute.
func eventually(_ condition: () -> Bool) async -> Bool {
    for _ in 0..<30_000 {
        if condition() { return true }
        try? await Task.sleep(for: .milliseconds(2))
    }
    return condition()
}
