internal import WatchwordCore
internal import WatchwordProtocol

/// `credential/forget`: forgets credentials of the session and the keyring, logins, and decisions.
extension CredentialDesk {
    /// - Returns: the number of the removed credentials, or `nil` if the call is answered later.
    func forget(_ params: CredentialForget, _ call: Call<CredentialForget>, _ connection: ClientConnection) throws
        -> Int?
    {
        try refuseWhenLocked()
        switch params {
        case .id(.session(let number)): return try forget(number, call, connection)
        case .id(.keyring(let name)): forget(name, call, connection)
        case .id(let id):
            let (count, orders) = fetches.change { $0.forget(decision: id, of: connection.id.tag) }
            fetches.perform(orders, connection.cause)
            guard count > 0 else { throw RPCError.unknownCredential(id) }
            return answer(call, count, whenStoredBy: trust)
        case .pattern(let pattern): forget(pattern, call, connection)
        }
        return nil
    }

    /// Forgets a credential of the session. A token is forgotten with its login, which would otherwise provide the next one
    /// without a question.
    private func forget(_ number: Int, _ call: Call<CredentialForget>, _ connection: ClientConnection) throws -> Int? {
        let listed = fetches.table.sessionCredentials(of: connection.id.tag, now: context.now)
        let (count, orders) = fetches.change { $0.forget(number: number, pattern: nil, of: connection.id.tag) }
        fetches.perform(orders, connection.cause)
        guard count > 0 else { throw RPCError.unknownCredential(CredentialID.session(number)) }
        guard let token = listed.first(where: { $0.id == .session(number) && $0.kind == .token }) else { return count }
        let space = token.pattern
        let origin = SpacePattern(scheme: space.scheme, host: space.host, port: space.port)
        let path = token.path ?? "/"
        fetches.desks.tokens.forget(
            of: call.connection.tag,
            where: { place, _ in
                origin.contains(place.pattern) && PathRange.path(place.path, covers: path)
            }, completion: reference.direct { $0.clients.complete(call, $1.map { _ in count }) })
        return nil
    }

    /// Forgets an item of the keyring: a login, or a password.
    private func forget(_ name: String, _ call: Call<CredentialForget>, _ connection: ClientConnection) {
        fetches.change { $0.recordForgotten(nil) }
        let cause = connection.cause
        let finish: @Sendable (Result<Int, RPCError>) -> Void = reference.direct { desk, result in
            let isUnknown = (try? result.get()) == 0
            desk.clients.complete(call, isUnknown ? .failure(.unknownCredential(.keyring(name))) : result)
        }
        fetches.desks.tokens.forget(
            of: call.connection.tag, where: { _, item in item == name },
            completion: reference.direct { desk, logins in
                guard (try? logins.get()) == 0 else { return finish(logins) }
                desk.keyring.remove([name], of: nil, cause, completion: finish)
            })
    }

    private func forget(_ pattern: SpacePattern, _ call: Call<CredentialForget>, _ connection: ClientConnection) {
        let (count, orders) = fetches.change { $0.forget(number: nil, pattern: pattern, of: connection.id.tag) }
        let cause = connection.cause
        fetches.perform(orders, cause)
        let finish: @Sendable (Result<Int, RPCError>) -> Void = reference.direct { $0.clients.complete(call, $1) }
        // The passwords are forgotten even if a login cannot be.
        fetches.desks.tokens.forget(
            of: call.connection.tag, where: { place, _ in pattern.overlaps(place.pattern) },
            completion: reference.direct { desk, logins in
                desk.keyring.search(
                    pattern, isNeeded: (try? logins.get()) != nil,
                    completion: desk.reference.direct { desk, result in
                        if case .failure(let failure) = result, failure.mayHoldItems {
                            return finish(.failure(RPCError(.keyringUnavailable, failure.text)))
                        }
                        let items = ((try? result.get()) ?? []).filter { pattern.contains($0.pattern) }.map(\.id)
                        desk.keyring.remove(items, of: pattern, after: count, cause) { removed in
                            finish(removed.flatMap { removed in logins.map { removed + $0 } })
                        }
                    })
            })
    }
}
