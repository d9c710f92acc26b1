internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Manages stored credentials, grants and the lock on behalf of clients. Owns the passphrase of the lock; the other
/// state belongs to the fetch table and the keyring desk. Only `credential/get` releases a secret.
final class CredentialDesk {
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let keyring: KeyringDesk
    unowned let fetches: FetchRouter
    let reference: DeskReference<CredentialDesk>
    let trust: (any TrustPort)?
    private let consents: (any ConsentPort)?
    private var passphraseLock = PassphraseLock()

    init(_ fetches: FetchRouter, _ keyring: KeyringDesk, _ reference: DeskReference<CredentialDesk>) {
        (trust, consents) = (fetches.ports.trust, fetches.ports.consents)
        (context, audit, clients) = (fetches.context, fetches.audit, fetches.clients)
        (self.keyring, self.fetches, self.reference) = (keyring, fetches, reference)
    }

    func list(_ params: CredentialList, _ call: Call<CredentialList>) throws {
        try refuseWhenLocked()
        // The expiry of an item is stored in its secret.
        keyring.search(
            params.pattern, withSecrets: true,
            completion: reference.direct { desk, items in
                desk.fetches.desks.tokens.list(
                    of: call.connection.tag,
                    completion: desk.reference.direct {
                        $0.clients.complete(call, .success($0.listing(params.pattern, of: call.connection, items, $1)))
                    })
            })
    }

    private func listing(
        _ pattern: SpacePattern?, of id: ConnectionID, _ items: Result<[StoredItem], KeyringFailure>,
        _ grants: [CredentialDescription]
    ) -> CredentialList.Result {
        let session = fetches.table.sessionCredentials(of: id.tag, now: context.now)
        let stored = ((try? items.get()) ?? []).map { item in
            CredentialDescription(
                id: .keyring(item.id), kind: .password, pattern: item.pattern, user: item.account.user,
                domain: item.account.domain, path: item.path, expiresAt: item.expiresAt, persistence: .permanent,
                source: .keyring, isDefault: item.isDefault)
        }
        let decided = fetches.table.connectionDecisions(of: id.tag, now: context.now)
        let all = (session + decided + stored + grants).filter { description in
            pattern?.contains(description.pattern) ?? true
        }
        return (all, keyring.status)
    }

    func store(_ params: CredentialStore, _ call: Call<CredentialStore>, _ connection: ClientConnection) throws
        -> CredentialID?
    {
        try refuseWhenLocked()
        guard params.credential.persistence == .permanent else {
            guard params.credential.secret.isLocked else {
                throw RPCError(
                    .internalError,
                    "cannot store the credential: no more memory can be locked; raise the limit (ulimit -l) or clear the session"
                )
            }
            let (number, orders) = fetches.change {
                $0.give(params.credential, for: params.pattern, of: connection.id.tag, now: context.now)
            }
            fetches.perform(orders, connection.cause)
            return .session(number)
        }
        let finish: KeyringCompletion<String> = reference.direct { desk, result in
            if case .success = result {
                desk.fetches.change { $0.recordStored(params.credential, for: params.pattern, of: call.connection.tag) }
            }
            let reply = result.map { CredentialID.keyring($0) }
            desk.clients.complete(call, reply.mapError { RPCError(.keyringUnavailable, $0.text) })
        }
        keyring.save(params.credential, for: params.pattern, isAsked: true, connection.cause, completion: finish)
        return nil
    }

    func setDefault(_ params: CredentialSetDefault, _ call: Call<CredentialSetDefault>, _ connection: ClientConnection)
        throws -> Void?
    {
        try refuseWhenLocked()
        switch params.id {
        case .session(let number):
            let changed = fetches.change { $0.setDefault(number: number, of: connection.id.tag, now: context.now) }
            guard let orders = changed else { throw RPCError.unknownCredential(params.id) }
            fetches.perform(orders, connection.cause)
            return ()
        case .trust, .certificate: throw RPCError.unknownCredential(params.id)
        case .keyring(let name):
            keyring.markDefault(name, connection.cause, completion: reference.direct { $0.clients.complete(call, $1) })
            return nil
        }
    }

    func refuseWhenLocked() throws(RPCError) {
        guard fetches.table.isLocked else { return }
        throw RPCError(.locked, "the broker is locked; run \"watchword unlock\" to use stored credentials")
    }

    // MARK: Session and lock

    /// `broker/lock`: returns whether the broker is locked.
    /// - Throws: `locked` if the broker was already locked with another passphrase, which remains valid.
    func lock(_ params: BrokerLock, _ cause: Cause) throws -> Bool {
        // The session cache is locked even if the passphrase is refused below.
        context.log.notice("locked")
        audit.record(.locked, cause)
        fetches.perform(fetches.change { $0.lock() }, cause)
        fetches.desks.tokens.endSession()
        guard passphraseLock.set(params.passphrase) else {
            throw RPCError(.locked, "the broker is already locked with another passphrase; unlock it first")
        }
        return true
    }

    func unlock(_ params: BrokerUnlock, _ cause: Cause) throws -> Bool {
        switch passphraseLock.attemptUnlock(with: params.passphrase, now: context.now) {
        case .open: break
        case .wanted: throw RPCError(.locked, "the broker was locked with a passphrase, which is needed to unlock it")
        case .wrong(let wait):
            context.log.warning("wrong passphrase for broker/unlock")
            throw RPCError(.locked, "wrong passphrase; retry in \(wait.wholeSecondsUp) s")
        case .tooSoon(let wait):
            throw RPCError(
                .busy, "the previous passphrase was wrong; retry in \(wait.wholeSecondsUp) s")
        }
        context.log.notice("unlocked")
        audit.record(.unlocked, cause)
        fetches.change { $0.unlock() }
        return false
    }

    /// `session/clear`: returns the number of credentials, client certificates and trust exceptions removed.
    func clearSession(_ params: SessionClear, _ cause: Cause) throws -> Int {
        let address = try params.origin.map { text throws(FetchFailure) in try SiteAddress(text) }
        let since = params.since.map { context.now - (context.clock.sinceEpoch - $0) }
        let (removed, orders) = fetches.change { $0.clearSession(at: address, since: since) }
        context.log.notice("session cleared", metadata: ["removed": "\(removed)"])
        audit.record(.sessionCleared, cause) { event in
            event.count = removed
            event.origin = address?.text
        }
        fetches.perform(orders, cause)
        // A SOCKS proxy has no tokens.
        if address == nil || address?.origin != nil { fetches.desks.tokens.endSession(address?.origin) }
        return removed
    }

    // MARK: Grants

    func revokeGrants(_ params: GrantRevoke, _ call: Call<GrantRevoke>, _ cause: Cause) -> Int? {
        let (count, orders) = fetches.change { $0.revokeGrants(number: params.id, subject: params.subject) }
        context.log.notice("grants revoked", metadata: ["removed": "\(count)"])
        if count > 0 { audit.record(.grantRevoked, cause) { $0.count = count } }
        fetches.perform(orders, cause)
        return count > 0 ? answer(call, count, whenStoredBy: consents) : 0
    }

    /// Answers `call` with `result` after `port` has written its changes: a revoked grant or exception must not reappear
    /// when the broker restarts. If it could not be written, the answer is an error.
    /// - Returns: `result` if `port` is `nil`; otherwise `nil`, and the call is answered later.
    func answer<M: Method>(
        _ call: Call<M>, _ result: M.Result, whenStoredBy port: (any DurableStore)?
    ) -> M.Result? {
        guard let port else { return result }
        port.whenStored(
            reference.callback { desk, failure in
                let error = failure.map { RPCError(.internalError, "\($0); effective only until the broker ends") }
                desk.clients.complete(call, error.map { .failure($0) } ?? .success(result))
            })
        return nil
    }
}

extension Duration {
    fileprivate var wholeSecondsUp: Int { (wholeMilliseconds + 999) / 1000 }
}
