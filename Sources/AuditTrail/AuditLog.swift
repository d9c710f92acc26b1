internal import Dispatch
internal import Synchronization
public import WatchwordProtocol

/// The audit log: an event is in a queue at once, and in the file soon. However slow or full the disk is, nobody waits for it.
public final class AuditLog: Sendable {
    private struct Inbox {
        var events: [AuditEvent] = []
        /// Of the events for which there was no room.
        var dropped = 0
        var isEnabled: Bool
        var limits: AuditLimits
        var isWriting = false
        var hasEnded = false
    }

    private let inbox: Mutex<Inbox>
    private let journal: Mutex<AuditJournal>
    private let queue = DispatchQueue(label: "watchword.audit")
    private let report: @Sendable (AuditReport) -> Void

    /// - Parameters:
    ///   - folder: made when the first line is written.
    ///   - report: called on a thread of the log, once each time that something changes.
    public convenience init(
        folder: String, isEnabled: Bool = true, limits: AuditLimits = AuditLimits(),
        report: @escaping @Sendable (AuditReport) -> Void
    ) {
        self.init(AuditFolder(path: folder), isEnabled: isEnabled, limits: limits, report: report)
    }

    init(
        _ storage: any AuditStorage, isEnabled: Bool = true, limits: AuditLimits = AuditLimits(),
        report: @escaping @Sendable (AuditReport) -> Void
    ) {
        inbox = Mutex(Inbox(isEnabled: isEnabled, limits: limits))
        journal = Mutex(AuditJournal(storage))
        self.report = report
    }

    /// Takes over a new configuration; what waits is still written.
    public func configure(isEnabled: Bool, limits: AuditLimits) {
        inbox.withLock { ($0.isEnabled, $0.limits) = (isEnabled, limits) }
    }

    /// Returns at once. An event for which there is no room is counted.
    public func record(_ event: AuditEvent) {
        let isIdle = inbox.withLock { inbox in
            guard inbox.isEnabled, !inbox.hasEnded else { return false }
            guard inbox.events.count < AuditLimits.queue else {
                inbox.dropped += 1
                return false
            }
            inbox.events.append(event)
            defer { inbox.isWriting = true }
            return !inbox.isWriting
        }
        if isIdle { queue.async { self.write() } }
    }

    /// Writes what waits, for at most `limit`. A disk that does not answer is not waited for.
    public func shutDown(limit: Duration) {
        inbox.withLock { $0.hasEnded = true }
        let done = DispatchSemaphore(value: 0)
        queue.async {
            self.tellWhatIsLost()
            done.signal()
        }
        // Not by a wait with a limit: that goes by the clock on the wall, which somebody may set back meanwhile.
        let milliseconds = Int(limit / .milliseconds(1))
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { done.signal() }
        done.wait()
    }

    private func write() {
        while let (events, dropped, limits) = take() {
            for event in events {
                if let report = journal.withLock({ $0.write(event, limits) }) { self.report(report) }
            }
            // They were dropped while these waited, and so come behind them.
            guard dropped > 0, let last = events.last else { continue }
            let report = journal.withLock { $0.noteLost(dropped, timeMs: last.timeMs, limits) }
            if let report { self.report(report) }
        }
    }

    private func take() -> ([AuditEvent], Int, AuditLimits)? {
        inbox.withLock { inbox in
            guard !inbox.events.isEmpty else {
                inbox.isWriting = false
                return nil
            }
            defer { (inbox.events, inbox.dropped) = ([], 0) }
            return (inbox.events, inbox.dropped, inbox.limits)
        }
    }

    private func tellWhatIsLost() {
        let lost = journal.withLock { $0.lost } + inbox.withLock { $0.dropped }
        if lost > 0 { report(.ended(lost: lost)) }
    }
}
