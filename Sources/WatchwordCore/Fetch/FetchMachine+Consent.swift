internal import WatchwordProtocol

/// The use of what is kept by a program that has to be asked about (security rules, section 8): in a sandbox, or wherever the
/// configuration says so.
extension FetchMachine {
    /// Whether what comes from `source` is kept for others than this client: what was typed in for its fetches, or came with
    /// them, needs no consent.
    private func needsConsent(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        guard access.subject != nil, !isBrought(candidate.source) else { return false }
        guard candidate.source == .session else { return true }
        if let home = candidate.home { return home != access.home }
        return !context.session.wasBrought(candidate.credential, for: space, by: access.holder)
    }

    func isBrought(_ source: CredentialSource) -> Bool { [.explicit, .url, .client, .agent].contains(source) }

    /// What is known; `nil` where somebody has to be asked.
    private func consent(to use: GrantBook.Use, _ context: FetchContext) -> Bool? {
        if let known = consents[use] { return known }
        switch context.grants.consent(to: use, of: access, now: context.now) {
        case .session, .always: return true
        case .no, .once: return false
        case nil: return plan.interaction == .none ? false : nil
        }
    }

    /// Whether it may be used without asking anybody.
    func isConsented(
        _ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        !needsConsent(candidate, in: space, context) || consent(to: Self.use(candidate, space), context) == true
    }

    func isConsented(_ attempt: Attempt, _ context: FetchContext) -> Bool {
        let candidate = Candidate(credential: attempt.credential, source: attempt.source, home: attempt.home)
        return isConsented(candidate, in: attempt.space, context)
    }

    /// Somebody has said no in the course of this fetch, or would not be asked.
    func isRefused(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        needsConsent(candidate, in: space, context) && consents[Self.use(candidate, space)] == false
    }

    /// Before a candidate is sent: the question, where there is one. What may not be used is chosen no more.
    mutating func confirm(
        _ candidate: Candidate, in space: ProtectionSpace, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep? {
        guard needsConsent(candidate, in: space, context) else { return nil }
        return confirm(candidate.source, Self.use(candidate, space), question, &context)
    }

    /// Before a certificate is shown that is in this part of the session.
    mutating func confirmCertificate(
        home: Partition?, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep? {
        guard access.subject != nil, home != access.homeOfCertificates else { return nil }
        return confirm(.session, certificateUse, question, &context)
    }

    func isCertificateConsented(home: Partition?, _ context: FetchContext) -> Bool {
        access.subject == nil || home == access.homeOfCertificates || consent(to: certificateUse, context) == true
    }

    var isCertificateRefused: Bool { consents[certificateUse] == false }

    private var certificateUse: GrantBook.Use {
        GrantBook.Use(space: server.space(realm: nil, .clientCertificate), user: nil)
    }

    private mutating func confirm(
        _ source: CredentialSource, _ use: GrantBook.Use, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep? {
        switch consent(to: use, context) {
        case true?: return nil
        case false?:
            consents[use] = false
            return choose(question, &context)
        case nil:
            guard let subject = access.subject else { return unexpected(&context) }
            // One window at a time for what one program wants to use, and for what all want that nobody tells from others.
            var key = turnKey(for: use.space, source == .ambient ? .own : .find, context)
            (key.user, key.client) = (nil, access.isNameless ? .nameless : key.client)
            guard takeTurn(key, &context) else { return wait(question, at: .line(key), &context) }
            state = .confirming(question, use, epoch: context.grants.epoch)
            let request = ConsentRequest(
                subject: subject, space: use.space, user: use.user, source: source, url: hop.url.text,
                method: hop.method)
            return FetchStep(.confirm(request))
        }
    }

    /// The answer to the last `confirm`; `nil` when nobody has given one. More than is allowed counts as the most that is.
    mutating func confirmed(
        _ consent: Consent?, _ context: inout FetchContext
    ) -> FetchStep {
        guard case .confirming(let question, let use, let epoch) = state, let subject = access.subject else {
            return unexpected(&context)
        }
        time.endQueue(context.now)
        if let consent {
            // Said before everything was forgotten, it is good for no longer than this fetch.
            let isCurrent = epoch == context.grants.epoch
            let known = consent == .no ? consent : isCurrent ? subject.most(upTo: consent) : .once
            if context.grants.note(known, to: use, of: access, now: context.now) { context.add(.keepGrants) }
            // What lasts longer is looked up each time: it may be revoked.
            if known == .once || known == .no { consents[use] = known == .once }
        } else {
            context.grants.noteUnanswered(use, of: access, now: context.now)
            consents[use] = false
        }
        return choose(question, &context)
    }

    /// Whether what this client says by itself may be kept for good, for everybody: a program in a sandbox speaks for itself.
    func mayKeepForGood(_ source: CredentialSource) -> Bool { access.subject?.isSandboxed != true || source == .agent }

    private static func use(_ candidate: Candidate, _ space: ProtectionSpace) -> GrantBook.Use {
        GrantBook.Use(space: space, user: candidate.credential.shownAccount?.text)
    }
}

extension Subject {
    fileprivate func most(upTo consent: Consent) -> Consent {
        let allowed = allowedConsents
        if allowed.contains(consent) { return consent }
        return consent == .always && allowed.contains(.session) ? .session : .once
    }
}
