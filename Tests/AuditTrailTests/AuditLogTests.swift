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
        for number in 0..<100 { log.record(event(number)) }
        log.shutDown(limit: .seconds(10))
        #expect(storage.events.map { $0["count"]?.integer } == Array(0..<100))
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

    private func use(by program: String, _ script: String? = nil, name: String? = nil) -> AuditEvent {
        let client = AuditEvent.Client(name: name, pid: 1, uid: 1, executable: program, script: script)
        return AuditEvent(.credentialUsed, timeMs: 0, client: client)
    }

    /// Records the events while the disk hangs, and returns the programs, and the scripts, of those that are written.
    private func written(_ events: [AuditEvent]) -> [String] {
        let gate = DispatchSemaphore(value: 0)
        storage.gate.withLock { $0 = gate }
        let log = log()
        for event in events { log.record(event) }
        storage.gate.withLock { $0 = nil }
        for _ in 0..<4 { gate.signal() }
        log.shutDown(limit: .seconds(30))
        return storage.events.compactMap(\.["client"]).map { client in
            (client["executable"]?.string ?? "") + (client["script"]?.string ?? "")
        }
    }

    @Test(
        "Rule G10: many events of one program do not keep out one of another",
        arguments: [
            ("/bin/flood", nil, "x"), ("/bin/sh", "/flood", "x"),
            ("/bin/flood", nil, String(repeating: "x", count: 1 << 20)),
        ])
    func eachProgramHasItsShareOfTheQueue(program: String, script: String?, name: String) {
        let flood = Array(repeating: use(by: program, script, name: name), count: 3 * AuditLimits.queue)
        let found = written(flood + [use(by: "/bin/sh"), use(by: "/bin/sh", "/other")])
        #expect(found.suffix(2) == ["/bin/sh", "/bin/sh/other"])
        // The writer may have taken the first event, or a part of the flood, before the queue was full.
        #expect(found.count <= 2 * AuditLimits.queue + 2)
    }

    @Test func theWholeQueueIsBounded() {
        let programs = 2 * AuditLimits.wholeQueue + 1000
        let found = written((0..<programs).map { use(by: "/bin/\($0)") })
        #expect(found.count >= AuditLimits.wholeQueue && found.count <= 2 * AuditLimits.wholeQueue)
    }

    @Test func theBytesOfTheWholeQueueAreBounded() {
        let name = String(repeating: "x", count: 1 << 20)
        let found = written((0..<40).map { use(by: "/bin/\($0)", name: name) })
        #expect(found.count >= 16 && found.count <= 32)
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
