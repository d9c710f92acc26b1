internal import WatchwordProtocol

/// The netrc file, and then the configured commands, as sources of credentials after the keyring (SEMANTICS rule 15).
/// The same rules apply to both.
extension HopState {
    /// Returns the logins that were found; `nil` before the search, and after the configuration has changed to another
    /// file or command.
    func netrcLogins(at challenger: Challenger, _ context: FetchContext) -> ChallengerHistory.FoundLogins? {
        self[challenger].netrcLogins.flatMap { $0.mark < context.forgets.netrcMark ? nil : $0 }
    }

    /// Returns the first matching login of the file; `nil` if a login of the file was refused in any realm.
    /// - Parameter isForWeaker: as for `storedCandidate`.
    func netrcCandidate(
        for asked: AnswerableChallenge, in space: ProtectionSpace, isForWeaker: Bool = false,
        _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard netrcQuery(for: asked, in: space, context) != nil,
            isForWeaker || mayAnswer(asked, space, context),
            !isUndecidedInKeyring(asked, space, context)  // guard: netrc-undecided-keyring
        else { return nil }
        let user = fetch.namedUser(at: challenger)
        let found = netrcLogins(at: challenger, context)
        let first = found?.logins.lazy.filter(\.isSendable).map {
            LoginCredential(user: $0.user, password: $0.password)
        }.first { user?.admits($0.account) ?? true }  // guard: netrc-user
        guard let found, let first,
            !isNarrowerInSession(than: first, at: challenger, context),
            !self[challenger].hasRefusedNetrc(first),
            !context.keyring.hasRefused(first, at: challenger, now: context.now)  // guard: netrc-refused-to-others
        else { return nil }
        let candidate = Candidate(credential: first, source: found.source, partition: fetch.access.keyringPartition)
        return isUsable(candidate, for: asked, in: space, context) ? candidate : nil
    }

    /// Returns the query for the netrc file; `nil` if the file may not answer `asked`. An entry names neither scheme
    /// nor realm, so it is used only for servers (not for proxies), only for Basic and Digest, and over plain http only
    /// for this machine (SEMANTICS rules 23 and 25). If there is a keyring, it must have been searched completely,
    /// because its default may be another user (SEMANTICS rule 26).
    func netrcQuery(
        for asked: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> NetrcQuery? {
        guard context.environment.rules.usesNetrc, allowsStorageNow(for: space, context),
            case .server(let origin) = Challenger(space),
            // guard: netrc-behind-a-failed-keyring
            context.keyring.state == .disabled || isKeyringKnown(at: .server(origin), context),
            // guard: netrc-over-http, netrc-schemes
            !chain.isReadable(.server(origin)), [.httpBasic, .httpDigest].contains(asked.authenticationMethod)
        else { return nil }
        return NetrcQuery(origin: origin)
    }

    private func isKeyringKnown(at challenger: Challenger, _ context: FetchContext) -> Bool {
        keyringItems(at: challenger, context) != nil
            && (context.keyring.isAbsent || self[challenger].keyringItems?.isComplete == true)
    }

    /// Whether the file may answer `asked`. An entry applies to all realms of its server, but not to a weak challenge
    /// (SEMANTICS rule 27) or a scheme weaker than one that the server has accepted.
    private func mayAnswer(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        asked.digest?.protection != .legacy && !space.lacksRealm  // guard: netrc-weak-challenge
            && !isDowngrade(asked, Challenger(space), context, .server)  // guard: netrc-downgrade
    }

    /// Whether several keyring items match equally well, so that a respondent has to choose one.
    private func isUndecidedInKeyring(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        let challenger = Challenger(space)
        return keyringFinding(in: space, context) { pattern in
            !isDowngrade(asked, challenger, context, AcceptedStrength.Reach(pattern))
        } == .undecided
    }
}

extension Netrc.Login {
    /// Whether user name and password are short enough and contain no control characters (RFC 7617 section 2).
    fileprivate var isSendable: Bool {
        user.utf8.count <= Limits.credentialBytes && password.count <= Limits.credentialBytes
            && !user.utf8.contains { $0 < 0x20 || $0 == 0x7F }
            && !password.withUnsafeBytes { $0.contains { $0 < 0x20 || $0 == 0x7F } }
    }
}
