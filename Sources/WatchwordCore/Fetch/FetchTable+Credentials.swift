public import WatchwordProtocol

/// What is kept, as people and programs manage it by hand. No secret ever comes out.
extension FetchTable {
    /// A credential of the session, without its secret.
    public struct SessionCredential: Sendable, Equatable {
        /// Names it for as long as the broker runs.
        public var number: Int
        public var space: SpacePattern
        /// `nil` for a token.
        public var user: String?
        public var isDefault: Bool
        /// How long ago; `nil` when it was not used yet.
        public var lastUse: Duration?
    }

    public var keyring: KeyringRecord { memory.keyring }

    public var sessionCount: Int { memory.session.count }

    /// Whether anything of the session grows old, what was handed over for later included.
    public var keepsCredentials: Bool { !memory.session.isEmpty || !memory.decisions.isEmpty }

    public var isLocked: Bool { memory.isLocked }

    public func sessionCredentials(of client: ClientTag, now: Duration) -> [SessionCredential] {
        memory.session.listing(now: now).filter { $0.owner == owner(client) }.map { listing in
            SessionCredential(
                number: listing.number, space: listing.space, user: listing.user, isDefault: listing.isDefault,
                lastUse: listing.lastUse.map { now - $0 })
        }
    }

    /// Keeps a credential for the session before any server has seen it. Returns its number.
    public mutating func give(
        _ credential: LoginCredential, for pattern: SpacePattern, of client: ClientTag, now: Duration
    ) -> (number: Int, orders: [Order]) {
        let (number, isNews) = memory.session.give(credential, for: pattern, owner: owner(client), now: now)
        if isNews {
            memory.add(.changed(CredentialChange(.stored, pattern, user: credential.shownUser, source: .session)))
        }
        return (number, takeOrders())
    }

    /// Forgets credentials of the session: one, or all that are for `pattern`. Returns how many.
    public mutating func forget(
        number: Int?, pattern: SpacePattern?, of client: ClientTag
    ) -> (count: Int, orders: [Order]) {
        var forgotten: [SessionListing] = []
        let owner = owner(client)
        let count = memory.session.forget { listing in
            guard listing.owner == owner else { return false }
            let isMeant = number.map { $0 == listing.number } ?? pattern.map { $0.contains(listing.space) } ?? false
            if isMeant { forgotten.append(listing) }
            return isMeant
        }
        for listing in forgotten {
            memory.add(
                .changed(CredentialChange(.forgotten, listing.space, user: listing.user, source: .session)))
        }
        return (count, takeOrders())
    }

    /// `nil` when there is no such credential in the session.
    public mutating func setDefault(number: Int, of client: ClientTag, now: Duration) -> [Order]? {
        let owner = owner(client)
        let listing = memory.session.listing(now: now).first { $0.number == number && $0.owner == owner }
        guard let listing, let isChange = memory.session.prefer(number) else { return nil }
        if isChange {
            memory.add(
                .changed(CredentialChange(.defaultChanged, listing.space, user: listing.user, source: .session)))
        }
        return takeOrders()
    }

    /// Forgets the session's credentials: all, or those of one origin. Returns how many.
    public mutating func clearSession(origin: Origin?) -> (count: Int, orders: [Order]) {
        let count = memory.session.clear(origin: origin) + memory.decisions.clear(origin: origin)
        // Connections that somebody has logged in, or that an exception has let be made, outlive the exception otherwise.
        memory.identities.forget { origin == nil || $0.origin == origin || $0.handshake != nil }
        memory.keyring.forgetRefusals()
        if count > 0 { memory.add(.changed(CredentialChange(.cleared, nil, user: nil, source: .session))) }
        return (count, takeOrders())
    }

    /// The client is gone for good: what only it could use is of use to nobody.
    public mutating func forgetClient(_ client: ClientTag) {
        guard sharing == .client else { return }
        _ = memory.session.forget { $0.owner == client }
        _ = memory.decisions.clear(owner: client)
    }

    /// Forgets the session, and uses and keeps nothing until `unlock`.
    public mutating func lock() -> [Order] {
        let (_, orders) = clearSession(origin: nil)
        memory.isLocked = true
        return orders
    }

    public mutating func unlock() { memory.isLocked = false }

    /// New bounds; entries that are outside them end with the next `tick`.
    public mutating func setSessionLimits(_ limits: SessionLimits) { memory.session.limits = limits }

    public mutating func setKeyringEnabled(_ isEnabled: Bool) { memory.keyring.setEnabled(isEnabled) }

    /// Takes over what is trusted for good, from where it was written down.
    public mutating func setPermanentTrust(_ keys: [TrustedKey]) {
        for key in keys { memory.decisions.trust(key, isPermanent: true, owner: nil, now: .zero) }
    }

    /// Whether the keyring is on, and was not found silent just now.
    public func mayAskKeyring(now: Duration) -> Bool { memory.keyring.isWorthAsking(now: now) }

    /// Values of the keyring that were refused may be tried again.
    public mutating func forgetKeyringRefusals() { memory.keyring.forgetRefusals() }

    /// What a call to the keyring, made for no fetch, has shown.
    public mutating func noteKeyring(_ failure: KeyringFailure?, now: Duration) {
        if let failure { memory.keyring.noteFailure(failure, now: now) } else { memory.keyring.noteUse() }
    }
}
