internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Forgets credentials and decisions of the session when they expire, after a suspension of the machine, and when
/// settings change.
final class SessionDesk {
    private let context: DeskContext
    private let audit: AuditRecorder
    private unowned let fetches: FetchRouter
    private let reference: DeskReference<SessionDesk>
    private let hasKeyring: Bool
    private var isTicking = false
    private var suspendedBefore: Duration

    init(_ fetches: FetchRouter, suspendedBefore: Duration, _ reference: DeskReference<SessionDesk>) {
        (context, audit, hasKeyring) = (fetches.context, fetches.audit, fetches.ports.keyring != nil)
        (self.fetches, self.suspendedBefore, self.reference) = (fetches, suspendedBefore, reference)
    }

    /// The interval at which expired credentials and waits are removed, while there are any.
    private static let tickInterval = Duration.seconds(5)

    func tickIfNeeded() {
        guard !isTicking,
            fetches.table.hasSessionData || fetches.desks.tokens.hasGrants || fetches.table.waitingCount > 0
        else { return }
        isTicking = true
        reference.eventually(after: Self.tickInterval) { desk in
            desk.isTicking = false
            desk.handleSuspension()
            desk.fetches.report { $0.tick($1) }
            desk.fetches.desks.tokens.expireGrants()
        }
    }

    /// Forgets the session if the machine was suspended, because another person may have resumed it.
    func handleSuspension() {
        let shortest = Duration.seconds(1)
        let suspended = context.clock.suspended
        guard suspended - suspendedBefore >= shortest else { return }
        suspendedBefore = suspended
        forgetSession(because: "the machine was suspended")
    }

    /// Forgets all credentials, client certificates and trust exceptions of the session, and the grants that are not
    /// permanent.
    func forgetSession(because reason: String) {
        sessionCleared(fetches.change { $0.clearSession() }, because: reason)
    }

    private func sessionCleared(_ cleared: (count: Int, orders: [FetchTable.Order]), because reason: String) {
        let (count, orders) = cleared
        audit.record(.sessionCleared, .broker) { event in
            event.count = count
            event.reason = reason
        }
        context.log.notice("session cleared", metadata: ["removed": "\(count)", "reason": "\(reason)"])
        fetches.perform(orders)
        fetches.desks.tokens.endSession()
    }

    /// Applies the settings that can change at run time. The deadlines of open questions do not change.
    func reconfigure(_ change: (inout BrokerOptions) -> Void) {
        let before = context.options
        change(&context.options)
        let options = context.options
        if options.netrcFile != before.netrcFile || options.credentialCommands != before.credentialCommands {
            fetches.change { $0.netrcChanged() }
        }
        if options.oauthRules != before.oauthRules { fetches.desks.tokens.rulesChanged(before.oauthRules) }
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
