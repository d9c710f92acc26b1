public import WatchwordProtocol

/// Management of stored credentials and grants by users and programs. No method of this file returns a secret.
extension FetchTable {
    /// Sets the wall-clock time (since 1970), with which the expiry of credentials is compared.
    public mutating func recordTime(_ sinceEpoch: Duration) { context.session.wallTime = sinceEpoch }

    public var keyring: KeyringRecord { context.keyring }

    public var sessionCount: Int { context.session.count }

    /// Whether the session holds credentials, staged ones included, or decisions that can expire.
    public var hasSessionData: Bool {
        !context.session.isEmpty || !context.decisions.isEmpty || context.queues.hasAttempts
    }

    public var isLocked: Bool { context.isLocked }

    /// Returns the credentials of the session that this client may manage.
    public func sessionCredentials(of client: ClientTag, now: Duration) -> [CredentialDescription] {
        context.session.listing(now: now).filter { sharing.lets(client, manage: $0.owner) }.map { listing in
            CredentialDescription(
                id: .session(listing.number), kind: listing.isToken ? .token : .password, pattern: listing.space,
                user: listing.user, domain: listing.domain, path: listing.path, expiresAt: listing.expiresAt,
                persistence: .forSession, source: .session, isDefault: listing.isDefault,
                lastUsed: listing.lastUse.map { now - $0 })
        }
    }

    /// Returns when a token was last used; `nil` if it is not in the session.
    public func lastUse(of token: TokenDigest) -> Duration? { context.session.lastUse(of: token) }

    /// Replaces a token of the session by its successor.
    public mutating func replace(_ token: TokenDigest, with next: LoginCredential) {
        context.session.replace(token, with: next)
    }

    /// Stages a credential in the session before any server has seen it. Returns its number.
    public mutating func give(
        _ credential: LoginCredential, for pattern: SpacePattern, of client: ClientTag, now: Duration
    ) -> (number: Int, orders: [Order]) {
        let (number, isNews) = context.session.give(credential, for: pattern, owner: owner(client), now: now)
        if isNews {
            forgetOlder(credential, for: pattern)
            context.add(.announce(CredentialChange(.stored, pattern, user: credential.shownUser, source: .session)))
        }
        return (number, takeOrders())
    }

    /// Prevents a login in progress with an older password of the same user from being stored once it is accepted
    /// (SEMANTICS rule 18).
    private mutating func forgetOlder(_ credential: LoginCredential, for pattern: SpacePattern) {
        context.forgets.record(.credentials(pattern, user: credential.shownUser))
    }

    /// Records that a credential was stored in the keyring by hand. The credential supersedes the session credentials
    /// of the same account.
    public mutating func recordStored(_ credential: LoginCredential, for pattern: SpacePattern, of client: ClientTag) {
        forgetOlder(credential, for: pattern)
        context.session.supersede(with: credential, for: pattern, owner: owner(client))
    }

    /// Forgets the session credential `number`, or all session credentials and connection decisions that `pattern`
    /// matches. Returns how many were forgotten.
    public mutating func forget(
        number: Int?, pattern: SpacePattern?, of client: ClientTag
    ) -> (count: Int, orders: [Order]) {
        var forgotten: [SessionListing] = []
        let sharing = sharing
        let count = context.session.forget { listing in
            guard sharing.lets(client, manage: listing.owner) else { return false }
            let matches = number.map { $0 == listing.number } ?? pattern.map { $0.contains(listing.space) } ?? false
            if matches { forgotten.append(listing) }
            return matches
        }
        var decided = 0
        if let pattern {
            context.forgets.record(.credentials(pattern, user: nil))
            decided = forgetDecisions(of: client) { pattern.contains($0.space) }
        }
        recordForgotten(forgotten)
        return (count + decided, takeOrders())
    }

    /// Forgets a token of the session, because its login was forgotten.
    public mutating func forget(_ token: TokenDigest) -> [Order] { forget(context.session.numbers(of: token)) }

    /// Forgets all tokens that a server has accepted.
    public mutating func forgetTokens(at origin: Origin) -> [Order] {
        forget(context.session.numbersOfTokens(at: origin))
    }

    private mutating func forget(_ numbers: Set<Int>) -> [Order] {
        recordForgotten(context.session.listing(now: .zero).filter { numbers.contains($0.number) })
        _ = context.session.forget { numbers.contains($0.number) }
        return takeOrders()
    }

    private mutating func recordForgotten(_ listings: [SessionListing]) {
        for listing in listings {
            context.forgets.record(.credentials(listing.space, user: listing.user))
            context.add(.announce(CredentialChange(.forgotten, listing.space, user: listing.user, source: .session)))
        }
    }

    /// Records that keyring items are being deleted by hand: items that `pattern` matches, or any items if it is `nil`.
    public mutating func recordForgotten(_ pattern: SpacePattern?) {
        context.forgets.record(pattern.map { .credentials($0, user: nil) } ?? .everything)
    }

    /// The current state of the forget log, for `isCurrent`.
    public var forgetMark: ForgetMark { ForgetMark(mark: context.forgets.mark) }

    /// Whether no credentials of these spaces were forgotten by hand since `moment`.
    public func isCurrent(_ moment: ForgetMark, for pattern: SpacePattern) -> Bool {
        context.forgets.isCurrent(moment.mark, for: pattern, user: nil)
    }

    /// Makes a session credential the default of its space. Returns `nil` if no such credential exists.
    public mutating func setDefault(number: Int, of client: ClientTag, now: Duration) -> [Order]? {
        let listing = context.session.listing(now: now).first {
            $0.number == number && sharing.lets(client, manage: $0.owner)
        }
        guard let listing, let isChange = context.session.prefer(number, now: now) else { return nil }
        if isChange {
            context.add(
                .announce(CredentialChange(.defaultChanged, listing.space, user: listing.user, source: .session)))
        }
        return takeOrders()
    }

    /// Forgets all credentials and connection decisions of the session, or only the ones for `address`. Without `address`
    /// and `since`, also ends the grants and denials that are not permanent. Returns how many credentials and decisions
    /// were forgotten.
    /// - Parameter since: a monotonic time; entries from before are not forgotten. Logins in progress count as newer.
    public mutating func clearSession(
        at address: SiteAddress? = nil, since: Duration? = nil
    ) -> (count: Int, orders: [Order]) {
        context.forgets.record(address.map { .address($0) } ?? .everything)
        var count = context.session.clear(at: address, since: since)
        let origin = address?.origin
        // A SOCKS proxy has no certificate.
        if address == nil || origin != nil { count += context.decisions.clear(origin: origin, since: since) }
        // Otherwise connections with a login or a trust exception would outlive the session.
        context.identities.forget {
            address == nil || origin != nil && $0.origin == origin || $0.handshake != nil || $0.tunnel != nil
        }
        context.keyring.forgetRefusals()
        context.queues.forgetEndedAttempts()
        if address == nil && since == nil { context.consents.endSession() }  // guard: consent-ends-with-the-session
        if count > 0 { context.add(.announce(CredentialChange(.cleared, nil, user: nil, source: .session))) }
        return (count, takeOrders())
    }

    /// Forgets the grants, credentials and decisions that only this client could use. Called after it has disconnected.
    /// - Parameter subject: the subject of its fetches.
    public mutating func forgetClient(_ client: ClientTag, _ subject: Subject? = nil) {
        context.consents.forget(client)
        guard sharing != .user || subject?.isSandboxed == true else { return }
        _ = context.session.forget { $0.owner == .client(client) }
        _ = context.decisions.clear(owner: .client(client))
    }

    /// Returns the partition for a credential that a client stages.
    private func owner(_ client: ClientTag) -> Partition? { sharing == .client ? .client(client) : nil }

    /// Forgets the session. Until `unlock`, stored credentials are neither used nor added.
    public mutating func lock() -> [Order] {
        let (_, orders) = clearSession()
        context.isLocked = true
        return orders
    }

    // MARK: Grants

    /// The recorded grants and denials of consent, oldest first.
    public var grants: [GrantDescription] {
        context.consents.listing.map {
            GrantDescription(
                id: $0.number, subject: $0.subject, space: $0.use.space, user: $0.use.user, consent: $0.consent)
        }
    }

    /// Loads the permanent grants.
    public mutating func restoreConsents(_ grants: [PermanentConsent]) { context.consents.restore(grants) }

    /// Revokes the grant `number`, or all grants of `subject`, or all grants if both are `nil`. Returns how many were
    /// revoked.
    public mutating func revokeGrants(number: Int?, subject: ExactText?) -> (count: Int, orders: [Order]) {
        let (count, isPermanent) = context.consents.revoke { grant in
            // guard: revoked-by-bytes
            number.map { $0 == grant.number } ?? subject.map { $0 == grant.subject.text } ?? true
        }
        if isPermanent { context.add(.storeConsents(context.consents.permanent)) }
        return (count, takeOrders())
    }

    /// Ends the consent cooldowns, so that unanswered consent prompts may be shown again.
    public mutating func endCooldowns() { context.consents.endCooldowns() }

    public mutating func unlock() { context.isLocked = false }

    /// Sets the limits of the session. Entries that exceed them are forgotten at the next `tick`.
    public mutating func setSessionLimits(_ limits: SessionLimits) { context.session.limits = limits }

    /// Changes which clients share the session. Forgets the session, since its partitions change. Running fetches
    /// finish with the setting that they began with.
    public mutating func setSharing(_ sharing: Sharing) -> (count: Int, orders: [Order]) {
        self.sharing = sharing
        return clearSession()
    }

    public mutating func setKeyringEnabled(_ isEnabled: Bool) { context.keyring.setEnabled(isEnabled) }

    /// Loads the permanently trusted keys.
    public mutating func setPermanentTrust(_ keys: [TrustedKey]) {
        for key in keys { context.decisions.trust(key, isPermanent: true, owner: nil, now: .zero) }
    }

    /// Whether the keyring is enabled, and is not paused after a recent failure.
    public func mayAskKeyring(now: Duration) -> Bool { context.keyring.shouldQuery(now: now) }

    /// Records the outcome of a keyring call that was not made for a fetch; `nil` means success.
    public mutating func recordKeyring(_ failure: KeyringFailure?, now: Duration) {
        if let failure { context.keyring.recordFailure(failure, now: now) } else { context.keyring.recordUse() }
    }
}

/// A state of the forget log.
public struct ForgetMark: Sendable {
    let mark: ForgetLog.Mark
}

extension FetchTable.Sharing {
    /// Whether a client may manage an entry of the partition `owner`. Entries of its own partition are always allowed;
    /// shared entries and entries of programs are allowed unless each client has a partition of its own.
    /// - Parameter isForAll: whether the entry serves all clients regardless of the sharing.
    func lets(_ client: ClientTag, manage owner: Partition?, isForAll: Bool = false) -> Bool {
        switch owner {
        case .client(let owner): owner == client
        case .subject, .unidentified, nil: isForAll || self != .client
        }
    }
}
