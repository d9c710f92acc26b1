internal import JSONText
internal import WatchwordProtocol

/// Writes audit events to the storage as lines, and records the number of lost events.
struct AuditJournal: Sendable {
    private var storage: any AuditStorage
    /// The number of lost events not yet recorded in the file.
    private(set) var lost = 0
    private(set) var isFailing = false

    init(_ storage: any AuditStorage) { self.storage = storage }

    /// Writes an event. If events were lost before it, writes a record of their number first.
    /// - Returns: a report if this is the first failure, or the first success after failures.
    mutating func write(_ event: AuditEvent, _ limits: AuditLimits) -> AuditReport? {
        let missed = lost
        do throws(AuditFailure) {
            try recordLostEvents(event.timeMs, limits)
            try storage.append(line(event), limits)
            return succeeded(missed)
        } catch {
            lost += 1
            return failed(error)
        }
    }

    /// Counts events that were dropped before they reached the journal, and records the number of lost events.
    mutating func recordLost(_ count: Int, timeMs: Int, _ limits: AuditLimits) -> AuditReport? {
        lost += count
        let missed = lost
        do throws(AuditFailure) {
            try recordLostEvents(timeMs, limits)
            return succeeded(missed)
        } catch {
            return failed(error)
        }
    }

    private mutating func recordLostEvents(_ timeMs: Int, _ limits: AuditLimits) throws(AuditFailure) {
        guard lost > 0 else { return }
        var notice = AuditEvent(.eventsLost, timeMs: timeMs)
        notice.count = lost
        try storage.append(line(notice), limits)
        lost = 0
    }

    private mutating func succeeded(_ missed: Int) -> AuditReport? {
        defer { isFailing = false }
        return isFailing ? .recovered(lost: missed) : storage.takeLeftOut().map { .leftOut($0) }
    }

    private mutating func failed(_ failure: AuditFailure) -> AuditReport? {
        defer { isFailing = true }
        return isFailing ? nil : .failed(failure)
    }

    private func line(_ event: AuditEvent) -> [UInt8] {
        event.json.serialized(terminator: "\n")
    }
}

/// A change in the state of the log, to be reported to the operator.
public enum AuditReport: Sendable, Equatable {
    /// Writing fails; from now on events are only counted.
    case failed(AuditFailure)
    /// Writing succeeds again after `lost` events were lost.
    case recovered(lost: Int)
    /// An old file, or something in its place, could not be read, and was removed.
    case leftOut(AuditFailure)
    /// The log was closed before the loss of these events could be recorded.
    case ended(lost: Int)
}

/// The storage of audit records: files in the daemon, a fake that can fail in tests.
protocol AuditStorage: Sendable {
    /// Appends one line, which includes its line end. Throws if the line was not completely written.
    mutating func append(_ line: [UInt8], _ limits: AuditLimits) throws(AuditFailure)
    /// Returns why an old file could not be retained, once.
    mutating func takeLeftOut() -> AuditFailure?
}
