internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The desk for what people and programs manage by hand: credentials of the session and the keyring, grants, the lock. It owns
/// the passphrase of the lock; the rest is with the fetch table, and with the desk of the keyring. Only `credential/get` gives
/// out a secret.
final class CredentialDesk {
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let keyring: KeyringDesk
    unowned let fetches: FetchRouter
    let way: WayBack<CredentialDesk>
    private let trust: (any TrustPort)?
    private let grants: (any GrantPort)?
    private var passphraseLock = PassphraseLock()

    init(_ fetches: FetchRouter, _ keyring: KeyringDesk, _ way: WayBack<CredentialDesk>) {
        (trust, grants) = (fetches.ports.trust, fetches.ports.grants)
        (context, audit, clients) = (fetches.context, fetches.audit, fetches.clients)
        (self.keyring, self.fetches, self.way) = (keyring, fetches, way)
    }

    func list(_ params: CredentialListParams, _ call: CallID, from connection: ClientConnection) throws {
        try refuseWhenLocked()
        let id = connection.id
        // When an item expires stands in its secret.
        keyring.search(
            params.pattern, withSecrets: true,
            completion: way.direct {
                $0.clients.complete(call, of: id, .success($0.listing(params.pattern, of: id, $1)))
            })
    }

    private func listing(
        _ pattern: SpacePattern?, of id: ConnectionID, _ items: Result<[StoredItem], KeyringFailure>
    ) -> JSON {
        let session = fetches.table.sessionCredentials(of: id.tag, now: context.now).map { credential in
            CredentialDescription(
                id: .session(credential.number), kind: credential.isToken ? .token : .password,
                pattern: credential.space, user: credential.user,
                domain: credential.domain, path: credential.path, expiresAt: credential.expiresAt,
                persistence: .forSession, source: .session, isDefault: credential.isDefault,
                lastUsed: credential.lastUse)
        }
        let stored = ((try? items.get()) ?? []).map { item in
            CredentialDescription(
                id: .keyring(item.id), kind: .password, pattern: item.pattern, user: item.account.user,
                domain: item.account.domain, path: item.path, expiresAt: item.expiresAt, persistence: .permanent,
                source: .keyring, isDefault: item.isDefault,
                lastUsed: nil)
        }
        let decided = fetches.table.connectionDecisions(of: id.tag, now: context.now)
        let all = (session + decided + stored).filter { description in pattern?.contains(description.pattern) ?? true }
        return ["credentials": .array(all.map(\.json)), "keyring": keyring.status]
    }

    func store(_ params: CredentialStoreParams, _ call: CallID, from connection: ClientConnection) throws -> JSON? {
        try refuseWhenLocked()
        guard params.credential.persistence == .permanent else {
            guard params.credential.secret.isLocked else {
                throw RPCError(
                    .internalError,
                    "The credential is not kept: the kernel does not lock more memory for this user. Raise the limit (ulimit -l), or clear the session."
                )
            }
            let (number, orders) = fetches.change {
                $0.give(params.credential, for: params.pattern, of: connection.id.tag, now: context.now)
            }
            fetches.perform(orders, connection.cause)
            return ["id": .string(CredentialID.session(number).text)]
        }
        let id = connection.id
        let finish: KeyringCompletion<String> = way.direct { desk, result in
            if case .success = result {
                desk.fetches.change { $0.noteStored(params.credential, for: params.pattern, of: id.tag) }
            }
            let reply = result.map { id -> JSON in ["id": .string(CredentialID.keyring(id).text)] }
            desk.clients.complete(call, of: id, reply.mapError { RPCError(.keyringUnavailable, $0.text) })
        }
        keyring.save(params.credential, for: params.pattern, connection.cause, completion: finish)
        return nil
    }

    func forget(_ params: CredentialForgetParams, _ call: CallID, from connection: ClientConnection) throws -> JSON? {
        try refuseWhenLocked()
        switch params {
        case .id(.session(let number)):
            let (count, orders) = fetches.change { $0.forget(number: number, pattern: nil, of: connection.id.tag) }
            fetches.perform(orders, connection.cause)
            guard count > 0 else { throw RPCError.unknownCredential(CredentialID.session(number)) }
            return ["removed": .integer(count)]
        case .id(.keyring(let name)):
            let id = connection.id
            fetches.change { $0.noteForgotten(nil) }
            let finish: @Sendable (Result<Int, RPCError>) -> Void = way.direct { desk, result in
                let isUnknown = (try? result.get()) == 0
                desk.removed(isUnknown ? .failure(.unknownCredential(.keyring(name))) : result, call, of: id)
            }
            keyring.remove([name], of: nil, connection.cause, completion: finish)
            return nil
        case .id(let id):
            let (count, orders) = fetches.change { $0.forget(decision: id, of: connection.id.tag) }
            fetches.perform(orders, connection.cause)
            guard count > 0 else { throw RPCError.unknownCredential(id) }
            return answer(call, ["removed": .integer(count)], of: connection, whenKeptBy: trust)
        case .pattern(let pattern):
            let (count, orders) = fetches.change { $0.forget(number: nil, pattern: pattern, of: connection.id.tag) }
            let cause = connection.cause
            fetches.perform(orders, cause)
            let id = connection.id
            let finish: @Sendable (Result<Int, RPCError>) -> Void = way.direct { $0.removed($1, call, of: id) }
            let remove: KeyringCompletion<[StoredItem]> = way.direct { desk, result in
                let items = ((try? result.get()) ?? []).filter { pattern.contains($0.pattern) }
                desk.keyring.remove(items.map(\.id), of: pattern, after: count, cause, completion: finish)
            }
            keyring.search(pattern, completion: remove)
            return nil
        }
    }

    private func removed(_ result: Result<Int, RPCError>, _ call: CallID, of id: ConnectionID) {
        clients.complete(call, of: id, result.map { ["removed": .integer($0)] })
    }

    func setDefault(_ params: CredentialReference, _ call: CallID, from connection: ClientConnection) throws -> JSON? {
        try refuseWhenLocked()
        switch params.id {
        case .session(let number):
            let changed = fetches.change { $0.setDefault(number: number, of: connection.id.tag, now: context.now) }
            guard let orders = changed else { throw RPCError.unknownCredential(params.id) }
            fetches.perform(orders, connection.cause)
            return [:]
        case .trust, .certificate: throw RPCError.unknownCredential(params.id)
        case .keyring(let name):
            let id = connection.id
            keyring.markDefault(
                name, connection.cause, completion: way.direct { $0.clients.complete(call, of: id, $1) })
            return nil
        }
    }

    func refuseWhenLocked() throws(RPCError) {
        guard fetches.table.isLocked else { return }
        throw RPCError(.locked, "The broker is locked: it uses and keeps nothing. Unlock it with: watchword unlock")
    }

    // MARK: The session, and the lock

    func lock(_ params: LockParams, _ cause: Cause) throws -> JSON {
        // Whatever becomes of the passphrase: who locks means it.
        context.log.notice("locked")
        audit.record(.locked, cause)
        fetches.perform(fetches.change { $0.lock() }, cause)
        guard passphraseLock.set(params.passphrase) else {
            throw RPCError(.locked, "The broker is locked already, with another passphrase, which remains.")
        }
        return ["locked": true]
    }

    func unlock(_ params: LockParams, _ cause: Cause) throws -> JSON {
        switch passphraseLock.tryToOpen(with: params.passphrase, now: context.now) {
        case .open: break
        case .wanted: throw RPCError(.locked, "The broker was locked with a passphrase, which is needed to unlock it.")
        case .wrong(let wait):
            context.log.warning("a wrong passphrase to unlock")
            throw RPCError(.locked, "The passphrase is wrong. The next try is possible in \(wait.wholeSecondsUp) s.")
        case .tooSoon(let wait):
            throw RPCError(
                .busy, "The last passphrase was wrong. The next try is possible in \(wait.wholeSecondsUp) s.")
        }
        context.log.notice("unlocked")
        audit.record(.unlocked, cause)
        fetches.change { $0.unlock() }
        return ["locked": false]
    }

    func clearSession(_ params: SessionClearParams, _ cause: Cause) throws -> JSON {
        let origin = try params.origin.map { text throws(FetchFailure) in try FetchURL(text).origin }
        let since = params.since.map { context.now - (context.clock.sinceEpoch - $0) }
        let (removed, orders) = fetches.change { $0.clearSession(origin: origin, since: since) }
        context.log.notice("session cleared", metadata: ["removed": "\(removed)"])
        audit.record(.sessionCleared, cause) { event in
            event.count = removed
            event.origin = origin?.text
        }
        fetches.perform(orders, cause)
        return ["removed": .integer(removed)]
    }

    // MARK: Grants

    func revokeGrants(_ params: GrantRevokeParams, _ call: CallID, from connection: ClientConnection) throws -> JSON? {
        let cause = connection.cause
        let (count, orders) = fetches.change { $0.revokeGrants(number: params.id, subject: params.subject) }
        context.log.notice("grants revoked", metadata: ["removed": "\(count)"])
        if count > 0 { audit.record(.grantRevoked, cause) { $0.count = count } }
        fetches.perform(orders, cause)
        return answer(call, ["removed": .integer(count)], of: connection, whenKeptBy: grants)
    }

    /// What was taken away must not come back with the next broker: the reply waits until that is written.
    /// - Returns: `result`, where nothing is written.
    func answer(
        _ call: CallID, _ result: JSON, of connection: ClientConnection,
        whenKeptBy port: (any LastingPort)?
    ) -> JSON? {
        guard let port else { return result }
        let id = connection.id
        port.whenKept(way.callback { $0.clients.complete(call, of: id, .success(result)) })
        return nil
    }
}

extension Duration {
    fileprivate var wholeSecondsUp: Int { (wholeMilliseconds + 999) / 1000 }
}
