internal import WatchwordProtocol

/// The netrc file as a source of credentials, behind the keyring (semantics rule 15).
extension CredentialSearch {
    /// `nil` before the file was read, and when the configuration has named another one since then.
    func netrcLogins(at challenger: Challenger, _ context: FetchContext) -> [Netrc.Login]? {
        situation[challenger].netrcLogins.flatMap { $0.mark < context.forgets.netrcMark ? nil : $0.logins }
    }

    /// The first login of the file that fits; never another one after it was refused, in whatever realm.
    /// - Parameter isForWeaker: as for `storedCandidate`.
    func netrcCandidate(
        for asked: AnswerableChallenge, in space: ProtectionSpace, isForWeaker: Bool = false,
        _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard netrcQuery(for: asked, in: space, context) != nil,
            isForWeaker || mayAnswer(asked, space, context),
            !isUndecidedInKeyring(asked, space, context)
        else { return nil }
        let user = intent.namedUser(at: challenger)
        let first = netrcLogins(at: challenger, context)?.lazy.filter(\.isSendable).map {
            LoginCredential(user: $0.user, password: $0.password)
        }.first { user?.admits($0.account) ?? true }
        guard let first, !situation[challenger].hasRefusedNetrc(first),
            !context.keyring.hasRefused(first, at: challenger, now: context.now)
        else { return nil }
        let candidate = Candidate(credential: first, source: .netrc, home: intent.access.homeOfKeyring)
        return isUsable(candidate, for: asked, in: space, context) ? candidate : nil
    }

    /// An entry names neither a scheme nor a realm: it is for servers and not for proxies, for Basic and Digest, and over plain
    /// http for this machine alone (semantics rules 23 and 25). Where there is a keyring, the file counts only if the keyring was
    /// searched without failure: its default may be another user (rule 26).
    func netrcQuery(
        for asked: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> NetrcQuery? {
        guard context.environment.usesNetrc, situation.mayUseStorage(for: space, context),
            case .server(let origin) = Challenger(space),
            context.keyring.state == .disabled || isKeyringKnown(at: .server(origin), context),
            !chain.isReadable(.server(origin)), [.httpBasic, .httpDigest].contains(asked.authenticationMethod)
        else { return nil }
        return NetrcQuery(origin: origin)
    }

    private func isKeyringKnown(at challenger: Challenger, _ context: FetchContext) -> Bool {
        keyringItems(at: challenger, context) != nil
            && (context.keyring.isAbsent || situation[challenger].keyringItems?.isComplete == true)
    }

    /// An entry is for all realms of its server, and for no scheme that is weaker than one accepted there, nor for a weak
    /// challenge (semantics rule 27).
    private func mayAnswer(
        _ asked: AnswerableChallenge, _ space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        asked.digest?.protection != .legacy && !space.lacksRealm
            && !isDowngrade(asked, Challenger(space), context, .server)
    }

    /// Whether several items of the keyring fit equally well: then somebody is asked, and nothing is guessed.
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
    /// Whether a scheme can send it (RFC 7617 section 2).
    fileprivate var isSendable: Bool {
        user.utf8.count <= Limits.credentialBytes && password.count <= Limits.credentialBytes
            && !user.utf8.contains { $0 < 0x20 || $0 == 0x7F }
            && !password.withUnsafeBytes { $0.contains { $0 < 0x20 || $0 == 0x7F } }
    }
}
