internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Keeps what the session remembers for no longer than it may: time passes, a machine sleeps, settings change.
final class SessionKeeper {
    private let context: DeskContext
    private let audit: AuditRecorder
    private unowned let fetches: FetchRouter
    private let way: WayBack<SessionKeeper>
    private let hasKeyring: Bool
    private var isTicking = false
    private var suspendedBefore: Duration

    init(_ fetches: FetchRouter, suspendedBefore: Duration, _ way: WayBack<SessionKeeper>) {
        (context, audit, hasKeyring) = (fetches.context, fetches.audit, fetches.ports.keyring != nil)
        (self.fetches, self.suspendedBefore, self.way) = (fetches, suspendedBefore, way)
    }

    /// How often the broker looks at what has grown old, while there is anything that can.
    private static let tickInterval = Duration.seconds(5)

    func tickIfNeeded() {
        guard !isTicking, fetches.table.keepsCredentials || fetches.table.waitingCount > 0 else { return }
        isTicking = true
        way.eventually(after: Self.tickInterval) { keeper in
            keeper.isTicking = false
            keeper.noteSuspension()
            keeper.fetches.report { $0.tick($1) }
        }
    }

    /// Whoever opens a machine that slept may be somebody else: the session ends with its sleep.
    func noteSuspension() {
        let shortest = Duration.seconds(1)
        let suspended = context.clock.suspended
        guard suspended - suspendedBefore >= shortest else { return }
        suspendedBefore = suspended
        forgetSession(because: "the machine has slept")
    }

    /// Forgets all credentials of the session.
    func forgetSession(because reason: String) {
        sessionCleared(fetches.change { $0.clearSession(origin: nil) }, because: reason)
    }

    private func sessionCleared(_ cleared: (count: Int, orders: [FetchTable.Order]), because reason: String) {
        let (count, orders) = cleared
        audit.record(.sessionCleared, .broker) { event in
            event.count = count
            event.reason = reason
        }
        context.log.notice("session cleared", metadata: ["removed": "\(count)", "reason": "\(reason)"])
        fetches.perform(orders)
    }

    /// Takes over new settings, as far as they can change. Questions that are open keep their deadlines.
    func reconfigure(_ change: (inout BrokerOptions) -> Void) {
        let before = context.options
        change(&context.options)
        let options = context.options
        if options.netrcFile != before.netrcFile { fetches.change { $0.netrcChanged() } }
        if options.sharing != before.sharing {
            let cleared = fetches.change { $0.setSharing(options.sharing) }
            sessionCleared(cleared, because: "sharing.session has changed")
        }
        fetches.report { table, environment in
            table.setSessionLimits(options.session)
            table.setKeyringEnabled(options.isKeyringEnabled && hasKeyring)
            return table.tick(environment)
        }
    }
}
