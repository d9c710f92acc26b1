public import WatchwordProtocol

/// Management of accepted server certificates and of client certificates by users.
extension FetchTable {
    /// Returns the remembered decisions about connections: all permanent decisions, and the session's decisions that
    /// this client may manage.
    public func connectionDecisions(of client: ClientTag, now: Duration) -> [CredentialDescription] {
        // guard: inventory-of-others
        context.decisions.all.filter { sharing.lets(client, manage: $0.owner, isForAll: $0.isPermanent) }
            .map { $0.description(now: now) }
    }

    /// Forgets one decision. Returns how many were forgotten.
    public mutating func forget(decision id: CredentialID, of client: ClientTag) -> (count: Int, orders: [Order]) {
        let count = forgetDecisions(of: client) { $0.id == id }
        return (count, takeOrders())
    }

    /// Forgets the decisions that `matches` selects, and stops using the connections that depend on them. Returns how
    /// many were forgotten.
    mutating func forgetDecisions(of client: ClientTag, where matches: (ConnectionDecision) -> Bool) -> Int {
        let meant = context.decisions.all.filter {
            sharing.lets(client, manage: $0.owner, isForAll: $0.isPermanent) && matches($0)
        }
        for decision in meant {
            context.decisions.forget(decision)
            context.identities.forget(where: decision.isBehind)  // guard: forgotten-decisions-close-connections
            context.forgets.record(.credentials(decision.space, user: nil))
            context.add(.announce(CredentialChange(.forgotten, decision.space, user: nil, source: .session)))
        }
        if meant.contains(where: \.isPermanent) { context.add(.storeTrust(context.decisions.permanentKeys)) }
        return meant.count
    }
}
