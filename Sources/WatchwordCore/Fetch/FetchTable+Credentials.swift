public import WatchwordProtocol

/// What is kept, as people and programs manage it by hand. No secret ever comes out.
extension FetchTable {
    /// A credential of the session, without its secret.
    public struct SessionCredential: Sendable, Equatable {
        /// Names it for as long as the broker runs.
        public var number: Int
        public var isToken: Bool
        public var space: SpacePattern
        /// `nil` for a token.
        public var user: ExactText?
        public var domain: ExactText?
        public var path: ExactText?
        /// Since 1970.
        public var expiresAt: Duration?
        public var isDefault: Bool
        /// How long ago; `nil` when it was not used yet.
        public var lastUse: Duration?
    }

    /// The wall clock says this now, since 1970: credentials expire by it.
    public mutating func noteTime(_ sinceEpoch: Duration) { context.session.wallTime = sinceEpoch }

    public var keyring: KeyringRecord { context.keyring }

    public var sessionCount: Int { context.session.count }

    /// Whether anything of the session grows old, what was handed over for later included.
    public var keepsCredentials: Bool { !context.session.isEmpty || !context.decisions.isEmpty }

    public var isLocked: Bool { context.isLocked }

    public func sessionCredentials(of client: ClientTag, now: Duration) -> [SessionCredential] {
        context.session.listing(now: now).filter { sharing.lets(client, manage: $0.owner) }.map { listing in
            SessionCredential(
                number: listing.number, isToken: listing.isToken, space: listing.space, user: listing.user,
                domain: listing.domain,
                path: listing.path, expiresAt: listing.expiresAt, isDefault: listing.isDefault,
                lastUse: listing.lastUse.map { now - $0 })
        }
    }

    /// Keeps a credential for the session before any server has seen it. Returns its number.
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

    /// A login with an older password of the account may be under way: it does not come back when it is accepted (rule 18).
    private mutating func forgetOlder(_ credential: LoginCredential, for pattern: SpacePattern) {
        context.forgets.note(.credentials(pattern, user: credential.shownUser))
    }

    /// A credential was put into the keyring by hand: what the session had of the same account is not tried before it.
    public mutating func noteStored(_ credential: LoginCredential, for pattern: SpacePattern, of client: ClientTag) {
        forgetOlder(credential, for: pattern)
        context.session.supersede(with: credential, for: pattern, owner: owner(client))
    }

    /// Forgets credentials of the session: one, or all that are for `pattern`, and what else is remembered for its spaces.
    /// Returns how many.
    public mutating func forget(
        number: Int?, pattern: SpacePattern?, of client: ClientTag
    ) -> (count: Int, orders: [Order]) {
        var forgotten: [SessionListing] = []
        let sharing = sharing
        let count = context.session.forget { listing in
            guard sharing.lets(client, manage: listing.owner) else { return false }
            let isMeant = number.map { $0 == listing.number } ?? pattern.map { $0.contains(listing.space) } ?? false
            if isMeant { forgotten.append(listing) }
            return isMeant
        }
        var decided = 0
        if let pattern {
            context.forgets.note(.credentials(pattern, user: nil))
            decided = forgetDecisions(of: client) { pattern.contains($0.space) }
        }
        for listing in forgotten {
            context.forgets.note(.credentials(listing.space, user: listing.user))
            context.add(
                .announce(CredentialChange(.forgotten, listing.space, user: listing.user, source: .session)))
        }
        return (count + decided, takeOrders())
    }

    /// Somebody forgets an item of the keyring, now or in a moment: of these spaces, or of any where that is `nil`.
    public mutating func noteForgotten(_ pattern: SpacePattern?) {
        context.forgets.note(pattern.map { .credentials($0, user: nil) } ?? .everything)
    }

    /// Names this moment for `isCurrent`.
    public var forgetMark: ForgetMark { ForgetMark(mark: context.forgets.mark) }

    /// Whether nothing was forgotten by hand since then that means credentials of these spaces.
    public func isCurrent(_ moment: ForgetMark, for pattern: SpacePattern) -> Bool {
        context.forgets.isCurrent(moment.mark, for: pattern, user: nil)
    }

    /// `nil` when there is no such credential in the session.
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

    /// Forgets the session's credentials: all, or those of one origin. Returns how many.
    /// - Parameter since: a time of the broker's clock: what is older stays. What is under way is newer.
    public mutating func clearSession(origin: Origin?, since: Duration? = nil) -> (count: Int, orders: [Order]) {
        context.forgets.note(origin.map { .origin($0) } ?? .everything)
        let count =
            context.session.clear(origin: origin, since: since) + context.decisions.clear(origin: origin, since: since)
        // Connections that somebody has logged in, or that an exception has let be made, outlive the exception otherwise.
        context.identities.forget { origin == nil || $0.origin == origin || $0.handshake != nil }
        context.keyring.forgetRefusals()
        if origin == nil && since == nil { context.grants.endSession() }
        if count > 0 { context.add(.announce(CredentialChange(.cleared, nil, user: nil, source: .session))) }
        return (count, takeOrders())
    }

    /// The client is gone for good: what only it could use is of use to nobody.
    /// - Parameter subject: as it was given with its fetches.
    public mutating func forgetClient(_ client: ClientTag, _ subject: Subject? = nil) {
        context.grants.forget(client)
        guard sharing != .user || subject?.isSandboxed == true else { return }
        _ = context.session.forget { $0.owner == .client(client) }
        _ = context.decisions.clear(owner: .client(client))
    }

    /// Where a credential is put that a client hands over.
    private func owner(_ client: ClientTag) -> Partition? { sharing == .client ? .client(client) : nil }

    /// Forgets the session, and uses and keeps nothing until `unlock`.
    public mutating func lock() -> [Order] {
        let (_, orders) = clearSession(origin: nil)
        context.isLocked = true
        return orders
    }

    // MARK: Grants

    /// Who may use what, in the order in which it was said.
    public var grants: [GrantDescription] {
        context.grants.listing.map {
            GrantDescription(
                id: $0.number, subject: $0.subject, space: $0.use.space, user: $0.use.user, consent: $0.consent)
        }
    }

    /// Takes over what was granted for good.
    public mutating func restoreGrants(_ grants: [StandingGrant]) { context.grants.restore(grants) }

    /// Revokes one, all of a program, or all. Returns how many.
    public mutating func revokeGrants(number: Int?, subject: ExactText?) -> (count: Int, orders: [Order]) {
        let (count, isPermanent) = context.grants.revoke { grant in
            number.map { $0 == grant.number } ?? subject.map { $0 == grant.subject.text } ?? true
        }
        if isPermanent { context.add(.keepGrants(context.grants.permanent)) }
        return (count, takeOrders())
    }

    /// What nobody has consented to is asked about again.
    public mutating func forgetSilences() { context.grants.forgetSilences() }

    public mutating func unlock() { context.isLocked = false }

    /// New bounds; entries that are outside them end with the next `tick`.
    public mutating func setSessionLimits(_ limits: SessionLimits) { context.session.limits = limits }

    /// Changes who may use what is remembered. The session is forgotten with it, as it is divided in another way. Fetches that run
    /// finish under the rule that they began with.
    public mutating func setSharing(_ sharing: Sharing) -> (count: Int, orders: [Order]) {
        self.sharing = sharing
        return clearSession(origin: nil)
    }

    public mutating func setKeyringEnabled(_ isEnabled: Bool) { context.keyring.setEnabled(isEnabled) }

    /// Takes over what is trusted for good, from where it was written down.
    public mutating func setPermanentTrust(_ keys: [TrustedKey]) {
        for key in keys { context.decisions.trust(key, isPermanent: true, owner: nil, now: .zero) }
    }

    /// Whether the keyring is on, and was not found silent just now.
    public func mayAskKeyring(now: Duration) -> Bool { context.keyring.isWorthAsking(now: now) }

    /// Values of the keyring that were refused may be tried again.
    public mutating func forgetKeyringRefusals() { context.keyring.forgetRefusals() }

    /// What a call to the keyring, made for no fetch, has shown.
    public mutating func noteKeyring(_ failure: KeyringFailure?, now: Duration) {
        if let failure { context.keyring.noteFailure(failure, now: now) } else { context.keyring.noteUse() }
    }
}

/// A moment among what was forgotten by hand.
public struct ForgetMark: Sendable {
    let mark: ForgetLog.Mark
}

extension FetchTable.Sharing {
    /// By hand a user manages what all programs have brought, those in sandboxes too.
    /// - Parameter isForAll: whether it is used for every client, whatever is shared.
    func lets(_ client: ClientTag, manage owner: Partition?, isForAll: Bool = false) -> Bool {
        switch owner {
        case .client(let owner): owner == client
        case .subject, .nameless, nil: isForAll || self != .client
        }
    }
}
