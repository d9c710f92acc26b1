internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// `credential/get`: for programs that log in by themselves, where the configuration says so.
extension CredentialDesk {
    func handOut(_ params: CredentialGetParams, _ call: CallID, to connection: ClientConnection) throws {
        try refuseWhenLocked()
        try checkHandOut(of: params.pattern, to: connection)
        let id = connection.id
        if let credential = fetches.table.sessionCredential(for: params, of: id.tag, now: context.now) {
            return finishHandOut(credential, from: .session, params, call, to: id)
        }
        guard keyring.mayBeAsked else { return finishHandOut(nil, from: .keyring, params, call, to: id) }
        let mark = fetches.table.forgetMark
        keyring.find(
            fetches.table.keyringQueries(for: params.pattern), withSecrets: true,
            completion: way.direct { $0.handOut($1, since: mark, params, call, to: id) })
    }

    /// The answer of the keyring has come; meanwhile the lock may have been turned, the configuration read anew, or the
    /// process may have become another program.
    private func handOut(
        _ result: Result<[KeyringItem], KeyringFailure>, since mark: ForgetMark, _ params: CredentialGetParams,
        _ call: CallID, to id: ConnectionID
    ) {
        guard let connection = clients[id] else { return }
        do throws(RPCError) {
            try refuseWhenLocked()
            try checkHandOut(of: params.pattern, to: connection)
            let items = try result.mapError { RPCError(.keyringUnavailable, $0.text) }.get()
            let isCurrent = fetches.table.isCurrent(mark, for: params.pattern)
            let credential = isCurrent ? fetches.table.keyringCredential(for: params, among: items) : nil
            finishHandOut(credential, from: .keyring, params, call, to: id)
        } catch {
            audit.recordDenial(error, connection.cause)
            connection.complete(call, .failure(error))
        }
    }

    private func checkHandOut(of pattern: SpacePattern, to connection: ClientConnection) throws(RPCError) {
        guard !context.options.handOuts.isEmpty else {
            throw RPCError(
                .denied,
                "No program is given passwords. The configuration names those that are: credentials.hand-out, see watchword-config(5)."
            )
        }
        // Not as it was when it connected: a process can become another program, and keep its connection.
        let program = connection.peer.executable == nil ? nil : connection.peer.executableNow()
        guard let program, ExactText(program) == connection.peer.executable.map({ ExactText($0) }) else {
            throw RPCError(
                .denied,
                "Passwords are given to programs that the configuration names, and the kernel does not name this one.")
        }
        guard context.options.handOuts.contains(where: { $0.covers(program, pattern) }) else {
            throw RPCError(
                .denied,
                "The configuration gives \(program.shortened) no passwords of \(DisplayURL.host(pattern.host.string)). To let it: credentials.hand-out = [\"\(program.shortened) \(DisplayURL.host(pattern.host.string))\"]."
            )
        }
        guard connection.peer.runsFile(program) else {
            throw RPCError(
                .denied,
                "Passwords are given to programs of this system: the file that runs here as \(program.shortened) is another one."
            )
        }
    }

    private func finishHandOut(
        _ credential: LoginCredential?, from source: CredentialSource, _ params: CredentialGetParams,
        _ call: CallID, to id: ConnectionID
    ) {
        guard let connection = clients[id] else { return }
        guard let credential else {
            return connection.complete(
                call,
                .failure(
                    RPCError(.unknownCredential, "Nothing is kept for this, or nothing that fits better than the rest.")
                ))
        }
        audit.record(.credentialHandedOut, connection.cause) { event in
            event.space = params.pattern
            event.user = credential.shownUser
            event.source = source
        }
        connection.complete(
            call, .success(["credential": Credential.login(credential).json, "source": .string(source.rawValue)]))
    }
}
