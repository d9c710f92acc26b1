import Foundation
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Runs `body` with an engine.
/// - Parameters:
///   - authority: the only authority that the engine trusts.
///   - tokenModule: the PKCS#11 module.
func withEngine<Value>(
    trusting authority: TestCertificate? = nil, tokenModule: String? = nil,
    _ body: (RemoteEngine) async throws -> Value
) async throws -> Value {
    let file = try authority.map { try TemporaryFile($0.pem) }
    defer { file?.remove() }
    // On a busy machine a test may pause for longer than the idle limit of a login.
    let engine = try RemoteEngine(
        caFile: file?.path, tokenModule: tokenModule, idle: IdleLimits(login: .seconds(300)))
    defer { engine.shutDown() }
    return try await body(engine)
}

extension RemoteEngine {
    /// Waits for the end of one exchange; every exchange of a test has a timeout.
    func exchange(_ request: TransferRequest, _ quotas: ResponseQuotas = ResponseQuotas()) async -> Outcome {
        await withCheckedContinuation { continuation in
            _ = start(Boxed(request), quotas) { continuation.resume(returning: $0) }
        }
    }
}

extension RemoteEngine {
    func start(_ request: TransferRequest, completion: @escaping @Sendable (Outcome) -> Void) -> TransferID {
        start(Boxed(request), ResponseQuotas(), completion: completion)
    }
}

/// Waits until `condition` holds; the test fails after about a minute.
func until(_ condition: () -> Bool) async throws {
    for _ in 0..<30_000 {
        if condition() { return }
        try await Task.sleep(for: .milliseconds(2))
    }
    Issue.record("the expected condition did not become true")
}

func secret(_ text: String) -> Secret { Array(text.utf8).withUnsafeBytes { Secret(copying: $0) } }

func request(
    _ url: String, _ method: String = "GET", headers: [HeaderField] = [], authorization: String? = nil,
    body: String? = nil, timeout: Duration = .seconds(60), maxBodyBytes: Int = 1 << 20
) -> TransferRequest {
    guard let place = try? FetchURL(url) else { preconditionFailure("a test asks for \(url)") }
    return TransferRequest(
        url: place, method: method, headers: headers,
        authorization: authorization.map(secret),
        body: body.map { .bytes(Array($0.utf8)) }, timeout: timeout,
        Indirect(wrappedValue: TransferOptions(maxBodyBytes: maxBodyBytes)))
}

extension Result where Success == TransferResponse, Failure == TransferFailure {
    var failure: TransferFailure? {
        if case .failure(let failure) = self { failure } else { nil }
    }

    var failureKind: TransferFailure.Kind? { failure?.kind }

    var text: String? { (try? get()).map { String(decoding: $0.body, as: UTF8.self) } }
}

let okay = ScriptedServer.Reply.bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

/// Runs a blocking call on a separate thread.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// Returns two connected sockets; the first is for the engine.
func socketPair() -> (engine: Int32, client: Int32) {
    var sockets: [Int32] = [-1, -1]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &sockets) == 0)
    return (sockets[0], sockets[1])
}

/// Writes a request body as a client does, and shuts the socket down.
func write(_ text: String, to socket: Int32, thenEnds: Bool = true) async {
    // A failed fetch does not read from the socket any more.
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    await onThread {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
        if thenEnds { shutdown(socket, Int32(SHUT_WR)) }
    }
}
