import JSONText
import Synchronization
import WatchwordCore
import WatchwordProtocol

/// Records every event.
final class FakeAudit: AuditPort {
    private let state = Mutex<[AuditEvent]>([])

    func record(_ event: AuditEvent) { state.withLock { $0.append(event) } }

    var events: [AuditEvent] { state.withLock { $0 } }

    var kinds: [AuditEvent.Kind] { events.map(\.kind) }

    func takeEvents() -> [AuditEvent] {
        state.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
