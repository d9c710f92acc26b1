import Dispatch
import JSONText
import Synchronization
import WatchwordProtocol

@testable import AuditTrail

/// Records lines; fails or blocks on request.
final class FakeStorage: AuditStorage {
    private struct State {
        var lines: [String] = []
        var isFull = false
        var hasGivenUp = false
    }

    private let state = Mutex(State())
    /// A semaphore that each append waits for, if it is set; at most a minute, so that a test that would hang fails.
    let gate = Mutex<DispatchSemaphore?>(nil)

    var isFull: Bool {
        get { state.withLock { $0.isFull } }
        set { state.withLock { $0.isFull = newValue } }
    }

    /// Whether the semaphore was not signaled within the minute.
    var hasGivenUp: Bool { state.withLock { $0.hasGivenUp } }

    var lines: [String] { state.withLock { $0.lines } }

    var events: [JSON] {
        lines.compactMap { try? JSON.parse(Array($0.utf8), limits: JSONLimits(depth: 8, values: 256)) }
    }

    var kinds: [String] { events.map { $0["kind"]?.string ?? "?" } }

    func takeLeftOut() -> AuditFailure? { nil }

    func append(_ line: [UInt8], _ limits: AuditLimits) throws(AuditFailure) {
        if gate.withLock({ $0 })?.wait(timeout: .now() + 60) == .timedOut { state.withLock { $0.hasGivenUp = true } }
        if isFull { throw AuditFailure("No space left") }
        state.withLock { $0.lines.append(String(decoding: line, as: UTF8.self)) }
    }
}

final class Reports: Sendable {
    private let reports = Mutex<[AuditReport]>([])

    var all: [AuditReport] { reports.withLock { $0 } }

    func add(_ report: AuditReport) { reports.withLock { $0.append(report) } }
}

func event(_ number: Int = 0) -> AuditEvent {
    var event = AuditEvent(.locked, timeMs: number)
    event.count = number
    return event
}
