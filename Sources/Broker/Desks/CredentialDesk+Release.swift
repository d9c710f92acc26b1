internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// `credential/get`: releases stored credentials to programs that log in by themselves, if the configuration allows it.
extension CredentialDesk {
    func releaseCredential(_ params: CredentialGet, _ call: Call<CredentialGet>, _ connection: ClientConnection) throws
    {
        try refuseWhenLocked()
        try checkRelease(of: params.pattern, to: connection)
        guard !connection.isEarly else {  // guard: release-identified-first
            throw RPCError(
                .denied,
                "this request was sent before the broker had identified the program, so another program may have sent it; send it after the reply to initialize"
            )
        }
        let query = params.pattern.authenticationMethod == .bearer ? tokenQuery(params, call.connection) : nil
        if let query, let refused = params.refusedToken {
            let mark = TokenDigest(refused, for: query.url.origin)
            fetches.perform(fetches.change { $0.forget(mark) }, connection.cause)
        }
        if let credential = fetches.table.sessionCredential(for: params, of: call.connection.tag, now: context.now) {
            return finishRelease(credential, from: .session, params, call)
        }
        if let query {
            return fetches.desks.tokens.obtain(query) { [unowned self] in releaseToken($0, params, call) }
        }
        guard keyring.mayBeAsked else { return finishRelease(nil, from: .keyring, params, call) }
        let mark = fetches.table.forgetMark
        keyring.find(
            fetches.table.keyringQueries(for: params.pattern), withSecrets: true,
            completion: reference.direct { $0.releaseCredential($1, since: mark, params, call) })
    }

    /// Returns the query for a token that can be obtained without a person.
    private func tokenQuery(_ params: CredentialGet, _ client: ConnectionID) -> TokenQuery? {
        let pattern = params.pattern
        let text = DisplayURL.site(scheme: pattern.scheme, host: pattern.host.string, port: pattern.port)
        guard pattern.proxyType == nil, let url = try? FetchURL("\(text)\(params.path)") else { return nil }
        return context.options.tokens.query(for: url, of: context.options.sharing == .client ? client.tag : nil)
    }

    private func releaseToken(_ outcome: TokenOutcome, _ params: CredentialGet, _ call: Call<CredentialGet>) {
        guard let connection = clients[call.connection] else { return }
        do throws(RPCError) {
            try refuseWhenLocked()
            try checkRelease(of: params.pattern, to: connection)
            if case .failed(let failure) = outcome { throw RPCError(failure.kind, failure.text) }
            var token: LoginCredential?
            if case .token(let obtained) = outcome {
                guard obtained.binding == nil else {
                    throw RPCError(
                        .denied,
                        "the token is bound to a key of the broker (DPoP) and of no use without it; dpop = false in its table, and another login, turn that off"
                    )
                }
                // A server may send the same token again.
                guard obtained.secret != params.refusedToken else {
                    return finishRelease(nil, from: .keyring, params, call)
                }
                token = obtained
                // The next call gets the same one.
                let stored = fetches.change {
                    $0.give(obtained, for: params.pattern, of: connection.id.tag, now: context.now)
                }
                fetches.perform(stored.orders, connection.cause)
            }
            finishRelease(token, from: .keyring, params, call)
        } catch {
            audit.recordDenial(error, connection.cause)
            connection.complete(call, .failure(error))
        }
    }

    /// Continues after the keyring search. All checks are repeated, because during the search the broker may have been
    /// locked, the configuration may have been reloaded, or the process may have called exec.
    private func releaseCredential(
        _ result: Result<[KeyringItem], KeyringFailure>, since mark: ForgetMark, _ params: CredentialGet,
        _ call: Call<CredentialGet>
    ) {
        guard let connection = clients[call.connection] else { return }
        do throws(RPCError) {
            try refuseWhenLocked()
            try checkRelease(of: params.pattern, to: connection)
            let items = try result.mapError { RPCError(.keyringUnavailable, $0.text) }.get()
            let isCurrent = fetches.table.isCurrent(mark, for: params.pattern)
            let credential = isCurrent ? fetches.table.keyringCredential(for: params, among: items) : nil
            finishRelease(credential, from: .keyring, params, call)
        } catch {
            audit.recordDenial(error, connection.cause)
            connection.complete(call, .failure(error))
        }
    }

    private func checkRelease(of pattern: SpacePattern, to connection: ClientConnection) throws(RPCError) {
        guard !context.options.releaseRules.isEmpty else {
            throw RPCError(
                .denied,
                "the configuration does not release passwords to any program; see credentials.hand-out in watchword-config(5)"
            )
        }
        // Read again, because a process can call exec without closing its connection.
        let process = connection.peer.process
        let program = process?.currentExecutable()
        // guard: release-program-by-bytes
        guard let program, ExactText(program) == connection.peer.executable.map({ ExactText($0) }) else {
            throw RPCError(
                .denied,
                "passwords are released only to programs that the configuration names; this program is unidentified")
        }
        // guard: release-hosts
        guard context.options.releaseRules.contains(where: { $0.covers(program, pattern) }) else {
            throw RPCError(
                .denied,
                "the configuration does not release passwords for \(DisplayURL.host(pattern.host.string)) to \(program.shortened); to allow it, set credentials.hand-out = [\"\(program.shortened) \(DisplayURL.host(pattern.host.string))\"]"
            )
        }
        guard process?.runsFile(program) == true else {
            throw RPCError(
                .denied,
                "passwords are released only to programs of this system; this process runs another file with the path \(program.shortened)"
            )
        }
    }

    private func finishRelease(
        _ credential: LoginCredential?, from source: CredentialSource, _ params: CredentialGet,
        _ call: Call<CredentialGet>
    ) {
        guard let connection = clients[call.connection] else { return }
        guard let credential else {
            return connection.complete(
                call,
                .failure(
                    RPCError(.unknownCredential, "no stored credential matches, or several match equally")
                ))
        }
        audit.record(.credentialHandedOut, connection.cause) { event in
            event.space = params.pattern
            event.user = credential.shownUser
            event.source = source
        }
        connection.complete(call, .success((credential, source)))
    }
}
