import Dispatch
import JSONText
import Synchronization
import Testing
import WatchwordProtocol

@testable import AuditTrail

@Suite struct AuditLogTests {
    private let storage = FakeStorage()
    private let reports = Reports()

    private func log(isEnabled: Bool = true) -> AuditLog {
        AuditLog(storage, isEnabled: isEnabled) { [reports] in reports.add($0) }
    }

    @Test("Rule G10: audit records are written in their order")
    func eventsAreWrittenInTheirOrder() {
        let log = log()
        for number in 0..<500 { log.record(event(number)) }
        log.shutDown(limit: .seconds(10))
        #expect(storage.events.map { $0["count"]?.integer } == Array(0..<500))
        #expect(reports.all.isEmpty)
    }

    /// A disk that hangs delays no caller: the queue fills up, and the log counts the events that it then drops.
    @Test func aHangingDiskDelaysNoCaller() {
        let gate = DispatchSemaphore(value: 0)
        storage.gate.withLock { $0 = gate }
        let log = log()
        let count = 3 * AuditLimits.queue
        for number in 0..<count { log.record(event(number)) }
        #expect(!storage.hasGivenUp, "the events were recorded while the disk was hanging")
        storage.gate.withLock { $0 = nil }
        for _ in 0..<4 { gate.signal() }
        log.shutDown(limit: .seconds(10))
        let written = storage.kinds.count { $0 == "locked" }
        let lost = storage.events.filter { $0["kind"]?.string == "eventsLost" }.compactMap { $0["count"]?.integer }
        #expect(written >= AuditLimits.queue && written < count)
        #expect(written + lost.reduce(0, +) == count)
        // The record of lost events is not always last: events dropped before the writer starts are recorded before later ones.
        #expect(!lost.isEmpty)
    }

    @Test("Rule G10: many events of one kind do not keep out one of another")
    func eachKindHasItsShareOfTheQueue() {
        let gate = DispatchSemaphore(value: 0)
        storage.gate.withLock { $0 = gate }
        let log = log()
        for number in 0..<(3 * AuditLimits.queue) { log.record(event(number)) }
        log.record(AuditEvent(.credentialUsed, timeMs: 0))
        storage.gate.withLock { $0 = nil }
        for _ in 0..<4 { gate.signal() }
        log.shutDown(limit: .seconds(10))
        #expect(storage.kinds.contains("credentialUsed"))
    }

    @Test func shutdownDoesNotWaitForAHangingDisk() {
        let gate = DispatchSemaphore(value: 0)
        storage.gate.withLock { $0 = gate }
        let log = log()
        log.record(event())
        log.shutDown(limit: .milliseconds(50))
        #expect(!storage.hasGivenUp, "the disk was still hanging")
        storage.gate.withLock { $0 = nil }
        gate.signal()
    }

    @Test func atTheEndTheLostEventsAreReported() {
        storage.isFull = true
        let log = log()
        log.record(event())
        log.record(event())
        log.shutDown(limit: .seconds(10))
        #expect(reports.all == [.failed(AuditFailure("No space left")), .ended(lost: 2)])
    }

    @Test func theAuditLogCanBeSwitchedOffAndOn() {
        let log = log(isEnabled: false)
        log.record(event(1))
        log.configure(isEnabled: true, limits: AuditLimits())
        log.record(event(2))
        log.configure(isEnabled: false, limits: AuditLimits())
        log.record(event(3))
        log.shutDown(limit: .seconds(10))
        #expect(storage.events.map { $0["count"]?.integer } == [2])
    }
}
