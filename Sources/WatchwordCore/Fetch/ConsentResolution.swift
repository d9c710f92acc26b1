internal import WatchwordProtocol

/// Consent to the use of stored credentials by a program that needs it (security rules, section 8): in a sandbox, or if the
/// configuration requires it.
struct ConsentResolution: Sendable {
    private let intent: FetchIntent
    /// The answers given for this fetch.
    private var said: [GrantBook.Use: Bool] = [:]

    init(_ intent: FetchIntent) { self.intent = intent }

    /// The use that somebody has to consent to before the candidate is sent; `nil` where it is kept for no others than this
    /// client: what was typed in for its fetches, or came with them, needs no consent.
    func use(of candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> GrantBook.Use? {
        let access = intent.access
        guard access.subject != nil, !candidate.source.isBrought else { return nil }
        if candidate.source == .session {
            if let home = candidate.home {
                if home == access.home { return nil }
            } else if context.session.wasBrought(candidate.credential, for: space, by: access.holder) {
                return nil
            }
        }
        return GrantBook.Use(space: space, user: candidate.credential.shownAccount?.text)
    }

    /// The same before a certificate is shown that is in this part of the session.
    func use(ofCertificateIn home: Partition?, at server: Challenger) -> GrantBook.Use? {
        guard intent.access.subject != nil, home != intent.access.homeOfCertificates else { return nil }
        return Self.certificateUse(at: server)
    }

    private static func certificateUse(at server: Challenger) -> GrantBook.Use {
        GrantBook.Use(space: server.space(realm: nil, .clientCertificate), user: nil)
    }

    /// Returns the consent that is known; `nil` if a person has to be asked.
    func consent(to use: GrantBook.Use, _ context: FetchContext) -> Bool? {
        if let known = said[use] { return known }
        switch context.grants.consent(to: use, of: intent.access, now: context.now) {
        case .session, .always: return true
        case .no, .once: return false
        case nil: return intent.plan.interaction == .none ? false : nil
        }
    }

    /// Whether it may be used without asking anybody.
    func isConsented(_ use: GrantBook.Use?, _ context: FetchContext) -> Bool {
        use.map { consent(to: $0, context) == true } ?? true
    }

    /// Somebody has said no in the course of this fetch, or would not be asked.
    func isRefused(_ use: GrantBook.Use?) -> Bool { use.map { said[$0] == false } ?? false }

    func isCertificateRefused(at server: Challenger) -> Bool { isRefused(Self.certificateUse(at: server)) }

    mutating func refuse(_ use: GrantBook.Use) { said[use] = false }

    /// What was answered; `nil` when nobody has. More than is allowed counts as the most that is.
    /// - Parameter epoch: of the grants, when the question was put: said before everything was forgotten, it is good for no
    ///   longer than this fetch.
    mutating func note(_ consent: Consent?, to use: GrantBook.Use, epoch: Int, _ context: inout FetchContext) {
        guard let consent, let subject = intent.access.subject else {
            context.grants.noteUnanswered(use, of: intent.access, now: context.now)
            said[use] = false
            return
        }
        let isCurrent = epoch == context.grants.epoch
        let known = consent == .no ? consent : isCurrent ? subject.most(upTo: consent) : .once
        if context.grants.note(known, to: use, of: intent.access, now: context.now) {
            context.add(.keepGrants(context.grants.permanent))
        }
        // What lasts longer is looked up each time: it may be revoked.
        if known == .once || known == .no { said[use] = known == .once }
    }
}

extension Subject {
    fileprivate func most(upTo consent: Consent) -> Consent {
        let allowed = allowedConsents
        if allowed.contains(consent) { return consent }
        return consent == .always && allowed.contains(.session) ? .session : .once
    }
}
