public import WatchwordProtocol

/// Accepted certificates of servers, and client certificates, as people manage them by hand.
extension FetchTable {
    /// What the broker remembers about connections; of the session's, what this client may manage.
    public func connectionDecisions(of client: ClientTag, now: Duration) -> [CredentialDescription] {
        context.decisions.all.filter { sharing.lets(client, manage: $0.owner, isForAll: $0.isPermanent) }
            .map { $0.description(now: now) }
    }

    /// Forgets one. Returns how many that were.
    public mutating func forget(decision id: CredentialID, of client: ClientTag) -> (count: Int, orders: [Order]) {
        let count = forgetDecisions(of: client) { $0.id == id }
        return (count, takeOrders())
    }

    /// Forgets what `isMeant` says, and nobody gets a connection that rests on it any more. Returns how many that were.
    mutating func forgetDecisions(of client: ClientTag, where isMeant: (ConnectionDecision) -> Bool) -> Int {
        let meant = context.decisions.all.filter {
            sharing.lets(client, manage: $0.owner, isForAll: $0.isPermanent) && isMeant($0)
        }
        for decision in meant {
            context.decisions.forget(decision)
            context.identities.forget(where: decision.isBehind)
            context.forgets.note(.credentials(decision.space, user: nil))
            context.add(.announce(CredentialChange(.forgotten, decision.space, user: nil, source: .session)))
        }
        if meant.contains(where: \.isPermanent) { context.add(.keepTrust(context.decisions.permanentKeys)) }
        return meant.count
    }
}
