public import WatchwordProtocol

/// The use of what is kept by a program that has to be asked about (security rules, section 8): in a sandbox, or wherever the
/// configuration says so.
extension FetchMachine {
    /// Whether what comes from `source` is kept for others than this client: what was typed in for this fetch, or came with it,
    /// needs no consent.
    private func needsConsent(_ source: CredentialSource, home: Partition?) -> Bool {
        guard access.subject != nil else { return false }
        switch source {
        case .keyring, .ambient: return true
        case .session: return home == nil || home != access.home
        case .explicit, .url, .client, .agent: return false
        }
    }

    /// What is known; `nil` where somebody has to be asked.
    private func consent(
        to source: CredentialSource, _ use: GrantBook.Use, home: Partition?, _ memory: CredentialMemory, _ now: Duration
    ) -> Bool? {
        guard needsConsent(source, home: home) else { return true }
        if let known = consents[use] { return known }
        switch memory.grants.consent(to: use, of: access, now: now) {
        case .session, .always: return true
        case .no, .once: return false
        case nil: return plan.interaction == .none ? false : nil
        }
    }

    /// Whether it may be used without asking anybody.
    func isConsented(
        _ candidate: Candidate, in space: ProtectionSpace, _ memory: CredentialMemory, _ now: Duration
    ) -> Bool {
        consent(to: candidate.source, Self.use(candidate, space), home: candidate.home, memory, now) == true
    }

    func isConsented(_ attempt: Attempt, _ memory: CredentialMemory, _ now: Duration) -> Bool {
        let use = GrantBook.Use(space: attempt.space, user: attempt.credential.shownUser)
        return consent(to: attempt.source, use, home: attempt.home, memory, now) == true
    }

    /// Somebody has said no in the course of this fetch, or would not be asked.
    func isRefused(_ candidate: Candidate, in space: ProtectionSpace) -> Bool {
        needsConsent(candidate.source, home: candidate.home) && consents[Self.use(candidate, space)] == false
    }

    /// Before a candidate is sent: the question, where there is one. What may not be used is chosen no more.
    mutating func confirm(
        _ candidate: Candidate, in space: ProtectionSpace, _ question: Question, _ environment: FetchEnvironment,
        _ memory: inout CredentialMemory
    ) -> FetchStep? {
        confirm(
            candidate.source, Self.use(candidate, space), home: candidate.home, question, environment, &memory)
    }

    /// Before a certificate is shown.
    mutating func confirmCertificate(
        home: Partition?, _ question: Question, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep? {
        confirm(.session, certificateUse, home: home, question, environment, &memory)
    }

    func isCertificateConsented(home: Partition?, _ memory: CredentialMemory, _ now: Duration) -> Bool {
        consent(to: .session, certificateUse, home: home, memory, now) == true
    }

    var isCertificateRefused: Bool { consents[certificateUse] == false }

    private var certificateUse: GrantBook.Use {
        GrantBook.Use(space: server.space(realm: nil, .clientCertificate), user: nil)
    }

    private mutating func confirm(
        _ source: CredentialSource, _ use: GrantBook.Use, home: Partition?, _ question: Question,
        _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep? {
        switch consent(to: source, use, home: home, memory, environment.now) {
        case true?: return nil
        case false?:
            consents[use] = false
            return choose(question, environment, &memory)
        case nil:
            guard let subject = access.subject else { return unexpected(&memory) }
            // One window at a time for what one program wants to use; in the line that it is in already.
            let key = turnKey(for: use.space, source == .ambient ? .own : .find, memory)
            guard takeTurn(key, &memory) else { return wait(question, at: .line(key), environment, &memory) }
            state = .confirming(question, use)
            let request = ConsentRequest(
                subject: subject, space: use.space, user: use.user, source: source, url: hop.url.text,
                method: hop.method)
            return FetchStep(.confirm(request))
        }
    }

    /// The answer to the last `confirm`; `nil` when nobody has given one. More than is allowed counts as the most that is.
    mutating func confirmed(
        _ consent: Consent?, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        guard case .confirming(let question, let use) = state, let subject = access.subject else {
            return unexpected(&memory)
        }
        if let consent {
            let known = consent == .no ? consent : subject.most(upTo: consent)
            if memory.grants.note(known, to: use, of: access, now: environment.now) { memory.add(.keepGrants) }
            // What lasts longer is looked up each time: it may be revoked.
            if known == .once || known == .no { consents[use] = known == .once }
        } else {
            memory.grants.noteUnanswered(use, of: access, now: environment.now)
            consents[use] = false
        }
        return choose(question, environment, &memory)
    }

    /// Who has typed it in uses it without another question: for the session, or as long as was said before.
    func noteOwn(_ attempt: Attempt, _ now: Duration, _ memory: inout CredentialMemory) {
        noteOwn(attempt.source, GrantBook.Use(space: attempt.space, user: attempt.credential.shownUser), now, &memory)
    }

    func noteOwnCertificate(_ source: CredentialSource, _ now: Duration, _ memory: inout CredentialMemory) {
        noteOwn(source, certificateUse, now, &memory)
    }

    private func noteOwn(
        _ source: CredentialSource, _ use: GrantBook.Use, _ now: Duration, _ memory: inout CredentialMemory
    ) {
        guard access.subject != nil, !needsConsent(source, home: access.home), source != .session,
            memory.grants.consent(to: use, of: access, now: now) != .always
        else { return }
        if memory.grants.note(.session, to: use, of: access, now: now) { memory.add(.keepGrants) }
    }

    /// Whether what this client says by itself may be kept for good, for everybody: a program in a sandbox speaks for itself.
    func mayKeepForGood(_ source: CredentialSource) -> Bool { access.subject?.isSandboxed != true || source == .agent }

    private static func use(_ candidate: Candidate, _ space: ProtectionSpace) -> GrantBook.Use {
        GrantBook.Use(space: space, user: candidate.credential.shownUser)
    }
}

/// That a program is to use something that is kept: what a person has to know to say yes or no.
public struct ConsentRequest: Sendable, Equatable {
    public var subject: Subject
    public var space: ProtectionSpace
    /// `nil` for a token, a certificate, tickets.
    public var user: String?
    /// `session`, `keyring` or `ambient`.
    public var source: CredentialSource
    public var url: String
    public var method: String
}

extension Subject {
    fileprivate func most(upTo consent: Consent) -> Consent {
        let allowed = allowedConsents
        if allowed.contains(consent) { return consent }
        return consent == .always && allowed.contains(.session) ? .session : .once
    }
}
