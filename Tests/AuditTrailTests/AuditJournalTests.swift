import JSONText
import Testing
import WatchwordProtocol

@testable import AuditTrail

@Suite struct AuditJournalTests {
    private let limits = AuditLimits()
    private let storage = FakeStorage()

    @Test func anEventIsWrittenAsOneLine() {
        var journal = AuditJournal(storage)
        #expect(journal.write(event(7), limits) == nil)
        #expect(storage.lines == ["{\"time\":\"1970-01-01T00:00:00.007Z\",\"kind\":\"locked\",\"count\":7}\n"])
    }

    /// The disk is full twice: only the number of lost events is counted, and each time the operator is notified once.
    @Test func eventsLostOnAFullDiskAreCountedAndRecordedLater() {
        var journal = AuditJournal(storage)
        storage.isFull = true
        #expect(journal.write(event(1), limits) == .failed(AuditFailure("No space left")))
        #expect(journal.write(event(2), limits) == nil)
        #expect(journal.write(event(3), limits) == nil)
        #expect(storage.lines.isEmpty && journal.lost == 3)
        storage.isFull = false
        #expect(journal.write(event(4), limits) == .recovered(lost: 3))
        #expect(journal.write(event(5), limits) == nil)
        #expect(storage.kinds == ["eventsLost", "locked", "locked"])
        #expect(storage.events.map { $0["count"]?.integer } == [3, 4, 5])
        storage.isFull = true
        #expect(journal.write(event(6), limits) == .failed(AuditFailure("No space left")))
    }

    @Test func droppedEventsAreRecordedAfterTheLastEvent() {
        var journal = AuditJournal(storage)
        #expect(journal.write(event(1), limits) == nil)
        #expect(journal.recordLost(12, timeMs: 1, limits) == nil)
        #expect(storage.events.map { $0["count"]?.integer } == [1, 12])
        storage.isFull = true
        #expect(journal.recordLost(2, timeMs: 1, limits) == .failed(AuditFailure("No space left")))
        #expect(journal.lost == 2)
    }
}
