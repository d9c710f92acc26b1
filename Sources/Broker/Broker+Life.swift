internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// How long things live: time that passes, a machine that sleeps, a user who locks.
extension Router {
    /// How often the broker looks at what has grown old, while there is anything that can.
    private static let tickInterval = Duration.seconds(5)

    func tickIfNeeded() {
        guard !isTicking, table.keepsCredentials || table.waitingCount > 0 else { return }
        isTicking = true
        eventually(after: Self.tickInterval) { broker in
            broker.isTicking = false
            broker.noteSuspension()
            broker.perform(broker.table.tick(broker.environment))
        }
    }

    /// Whoever opens a machine that slept may be somebody else: the session ends with its sleep.
    func noteSuspension() {
        let shortest = Duration.seconds(1)
        let suspended = clock.suspended
        guard suspended - suspendedBefore >= shortest else { return }
        suspendedBefore = suspended
        forgetSession(because: "the machine has slept")
    }

    /// Forgets all credentials of the session.
    func forgetSession(because reason: String) {
        sessionCleared(table.clearSession(origin: nil), because: reason)
    }

    private func sessionCleared(_ cleared: (count: Int, orders: [FetchTable.Order]), because reason: String) {
        let (count, orders) = cleared
        audit.record(.sessionCleared, .broker) { event in
            event.count = count
            event.reason = reason
        }
        log.notice("session cleared", metadata: ["removed": "\(count)", "reason": "\(reason)"])
        perform(orders)
    }

    /// Takes over new settings, as far as they can change. Questions that are open keep their deadlines.
    func reconfigure(_ change: @Sendable (inout BrokerOptions) -> Void) {
        let (sharing, netrcFile) = (options.sharing, options.netrcFile)
        change(&context.options)
        if options.netrcFile != netrcFile { table.netrcChanged() }
        if options.sharing != sharing {
            sessionCleared(table.setSharing(options.sharing), because: "sharing.session has changed")
        }
        table.setSessionLimits(options.session)
        table.setKeyringEnabled(keyring.port != nil)
        perform(table.tick(environment))
    }
}
