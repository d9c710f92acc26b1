internal import Dispatch
internal import Synchronization
public import WatchwordProtocol

/// The audit log. Queues events and writes them on another thread, so that callers never wait for the disk.
/// Thread-safe.
public final class AuditLog: Sendable {
    /// The events that share a part of the queue.
    private struct Slot: Hashable {
        let kind: AuditEvent.Kind
        let executable: String?
        let script: String?

        init(_ event: AuditEvent) {
            (kind, executable, script) = (event.kind, event.client?.executable, event.client?.script)
        }
    }

    private struct Load {
        var count = 0
        var bytes = 0

        mutating func add(_ bytes: Int) {
            count += 1
            self.bytes += bytes
        }
    }

    private struct Inbox {
        var events: [AuditEvent] = []
        /// What is queued for each kind and program, and in all.
        var slots: [Slot: Load] = [:]
        var whole = Load()
        /// The number of events dropped because the queue was full.
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
    ///   - folder: the directory; created when the first line is written.
    ///   - report: called on a thread of the log for each change of its state.
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

    /// Applies a new configuration. Queued events are still written.
    public func configure(isEnabled: Bool, limits: AuditLimits) {
        inbox.withLock { ($0.isEnabled, $0.limits) = (isEnabled, limits) }
    }

    /// Queues an event and returns at once. If too many events of its kind and program are queued, or too many in all, the
    /// event is lost and counted.
    public func record(_ event: AuditEvent) {
        let isIdle = inbox.withLock { inbox in
            guard inbox.isEnabled, !inbox.hasEnded else { return false }
            let slot = Slot(event)
            let (load, whole) = (inbox.slots[slot] ?? Load(), inbox.whole)
            let hasShare = load.count < AuditLimits.queue && load.bytes < AuditLimits.queueBytes
            let hasRoom = whole.count < AuditLimits.wholeQueue && whole.bytes < AuditLimits.wholeQueueBytes
            guard hasShare, hasRoom else {
                inbox.dropped += 1
                return false
            }
            let bytes = event.textBytes
            inbox.slots[slot, default: Load()].add(bytes)
            inbox.whole.add(bytes)
            inbox.events.append(event)
            defer { inbox.isWriting = true }
            return !inbox.isWriting
        }
        if isIdle { queue.async { self.write() } }
    }

    /// Stops accepting events, and waits at most `limit` until the queued events are written.
    public func shutDown(limit: Duration) {
        inbox.withLock { $0.hasEnded = true }
        let done = DispatchSemaphore(value: 0)
        queue.async {
            self.recordLostEvents()
            done.signal()
        }
        // DispatchSemaphore.wait(timeout:) uses the wall clock, which may be set back during the wait.
        let milliseconds = Int(limit / .milliseconds(1))
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { done.signal() }
        done.wait()
    }

    private func write() {
        while let (events, dropped, limits) = take() {
            for event in events {
                if let report = journal.withLock({ $0.write(event, limits) }) { self.report(report) }
            }
            // The dropped events came after these events, which filled the queue.
            guard dropped > 0, let last = events.last else { continue }
            let report = journal.withLock { $0.recordLost(dropped, timeMs: last.timeMs, limits) }
            if let report { self.report(report) }
        }
    }

    private func take() -> ([AuditEvent], Int, AuditLimits)? {
        inbox.withLock { inbox in
            guard !inbox.events.isEmpty else {
                inbox.isWriting = false
                return nil
            }
            defer { (inbox.events, inbox.slots, inbox.whole, inbox.dropped) = ([], [:], Load(), 0) }
            return (inbox.events, inbox.dropped, inbox.limits)
        }
    }

    /// Reports the number of events that will never be recorded, if there are any.
    private func recordLostEvents() {
        let lost = journal.withLock { $0.lost } + inbox.withLock { $0.dropped }
        if lost > 0 { report(.ended(lost: lost)) }
    }
}

extension AuditEvent {
    /// The size of the texts, which clients and servers choose. They are shortened only when the event is written.
    fileprivate var textBytes: Int {
        let texts = [
            client?.name, client?.executable, client?.script, agent?.name, agent?.executable, agent?.script, fetchID,
            origin,
            space?.host.string, space?.realm?.string, user?.string, action, by, subject, program, reason,
        ]
        return texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }
}

/// The limits of the audit log.
public struct AuditLimits: Sendable, Equatable {
    /// The maximum size of a file in bytes. A file is rotated before a line that would exceed it.
    public var fileBytes: Int
    /// The number of rotated files to retain.
    public var oldFiles: Int

    public init(fileBytes: Int = 4 << 20, oldFiles: Int = 4) {
        self.fileBytes = fileBytes
        self.oldFiles = oldFiles
    }

    /// The maximum number of events of one kind and one program that wait to be written, and the size of their texts from which
    /// on no more are queued. Each program has its own share for each kind, so that its events keep out neither those of
    /// another kind nor those of another program.
    static let (queue, queueBytes) = (128, 256 << 10)
    /// The same for all events. The shares of one program, for all kinds, are less than half of it.
    static let (wholeQueue, wholeQueueBytes) = (8192, 16 << 20)
}

/// The reason why a line could not be written.
public struct AuditFailure: Error, Sendable, Equatable {
    /// The message for the log, including the path.
    public let text: String

    init(_ text: String) { self.text = text }
}
