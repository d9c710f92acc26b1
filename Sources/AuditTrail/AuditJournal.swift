internal import JSONText
internal import WatchwordProtocol

/// Puts events into lines, and sees to it that none is missing without a word.
struct AuditJournal: Sendable {
    private var storage: any AuditStorage
    /// Not written, and not told in the file yet.
    private(set) var lost = 0
    private(set) var isFailing = false

    init(_ storage: any AuditStorage) { self.storage = storage }

    /// - Returns: what the operator should hear of, where that has changed.
    mutating func write(_ event: AuditEvent, _ limits: AuditLimits) -> AuditReport? {
        let missed = lost
        do throws(AuditFailure) {
            try tellWhatIsLost(event.timeMs, limits)
            try storage.append(line(event), limits)
            return succeeded(missed)
        } catch {
            lost += 1
            return failed(error)
        }
    }

    /// Events that nobody has handed over, behind the last one that was.
    mutating func noteLost(_ count: Int, timeMs: Int, _ limits: AuditLimits) -> AuditReport? {
        lost += count
        let missed = lost
        do throws(AuditFailure) {
            try tellWhatIsLost(timeMs, limits)
            return succeeded(missed)
        } catch {
            return failed(error)
        }
    }

    private mutating func tellWhatIsLost(_ timeMs: Int, _ limits: AuditLimits) throws(AuditFailure) {
        guard lost > 0 else { return }
        var notice = AuditEvent(.eventsLost, timeMs: timeMs)
        notice.count = lost
        try storage.append(line(notice), limits)
        lost = 0
    }

    private mutating func succeeded(_ missed: Int) -> AuditReport? {
        defer { isFailing = false }
        return isFailing ? .recovered(lost: missed) : nil
    }

    private mutating func failed(_ failure: AuditFailure) -> AuditReport? {
        defer { isFailing = true }
        return isFailing ? nil : .failed(failure)
    }

    private func line(_ event: AuditEvent) -> [UInt8] {
        event.json.serialized(terminator: "\n")
    }
}

/// What the operator should hear of, once each time.
public enum AuditReport: Sendable, Equatable {
    /// From now on events are only counted.
    case failed(AuditFailure)
    /// Events are written again.
    case recovered(lost: Int)
    /// At the end: events that nobody will find in the file, nor their number.
    case ended(lost: Int)
}
