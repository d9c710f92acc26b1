internal import WatchwordProtocol

/// Checks a program's consent to use stored credentials (SECURITY-RULES G1 to G10). Programs in a sandbox need consent;
/// others need it only if the configuration requires it.
struct ConsentResolution: Sendable {
    private let fetch: SharedFetchRequest
    /// The answers to the consent prompts of this fetch.
    private var said: [ConsentBook.Use: Bool] = [:]
    /// The uses that a person has denied, in this fetch or before.
    private var denied: Set<ConsentBook.Use> = []

    init(_ fetch: SharedFetchRequest) { self.fetch = fetch }

    /// Returns the use that a person has to consent to before the candidate is sent. Returns `nil` if no consent is
    /// needed, as for a credential that this program has supplied or that was entered for one of its fetches.
    func use(of candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> ConsentBook.Use? {
        let access = fetch.access
        guard access.subject != nil, !candidate.source.isClientSupplied else { return nil }
        if candidate.source == .session {  // guard: consent-keyring
            if let partition = candidate.partition {
                if partition == access.partition { return nil }
            } else if context.session.wasProvided(candidate.credential, for: space, by: access.holder) {
                return nil
            }
        }
        return ConsentBook.Use(space: space, user: candidate.credential.shownAccount?.text)
    }

    /// Returns the use that a person has to consent to before a certificate of `partition` is sent; `nil` if no consent
    /// is needed.
    func use(ofCertificateIn partition: Partition?, at server: Challenger) -> ConsentBook.Use? {
        guard fetch.access.subject != nil, partition != fetch.access.certificatePartition else { return nil }
        return Self.certificateUse(at: server)
    }

    private static func certificateUse(at server: Challenger) -> ConsentBook.Use {
        ConsentBook.Use(space: server.space(realm: nil, .clientCertificate), user: nil)
    }

    /// Returns whether there is consent to `use`; `nil` if a person has to be asked.
    func consent(to use: ConsentBook.Use, _ context: FetchContext) -> Bool? {
        if let known = said[use] { return known }
        switch context.consents.consent(to: use, of: fetch.access, now: context.now) {
        case .session, .always: return true
        case .no, .once: return false  // guard: consent-no-is-no
        // guard: consent-before-sending
        case nil: return fetch.interaction == .none ? false : nil
        }
    }

    /// Whether `use` is allowed without a prompt.
    func isConsented(_ use: ConsentBook.Use?, _ context: FetchContext) -> Bool {
        use.map { consent(to: $0, context) == true } ?? true
    }

    /// Whether consent to `use` was denied in this fetch, or not given in time.
    func isRefused(_ use: ConsentBook.Use?) -> Bool { use.map { said[$0] == false } ?? false }

    /// Whether a person has denied the use of any credential of this space.
    func isDenied(in space: ProtectionSpace) -> Bool { denied.contains { $0.space == space } }

    func isCertificateRefused(at server: Challenger) -> Bool { isRefused(Self.certificateUse(at: server)) }

    mutating func refuse(_ use: ConsentBook.Use, _ context: FetchContext) {
        said[use] = false
        if context.consents.isDenied(use, to: fetch.access) { denied.insert(use) }
    }

    /// Records the answer to a consent prompt; `nil` if there was none. A consent for longer than the subject may have
    /// is reduced to the longest allowed.
    /// - Parameter epoch: the epoch of the grants when the prompt was shown. If grants were revoked or the session
    ///   ended since then, a consent applies to this fetch only.
    mutating func record(_ consent: Consent?, to use: ConsentBook.Use, epoch: Int, _ context: inout FetchContext) {
        guard let consent, let subject = fetch.access.subject else {
            context.consents.recordUnanswered(use, of: fetch.access, now: context.now)
            said[use] = false
            return
        }
        let isCurrent = epoch == context.consents.epoch
        let known = consent == .no ? consent : isCurrent ? subject.most(upTo: consent) : .once
        if context.consents.record(known, to: use, of: fetch.access, now: context.now) {
            context.add(.storeConsents(context.consents.permanent))
        }
        // A longer consent is looked up each time, since it can be revoked.
        if known == .once || known == .no { said[use] = known == .once }
        if known == .no { denied.insert(use) }
    }
}

extension Subject {
    fileprivate func most(upTo consent: Consent) -> Consent {
        let allowed = allowedConsents
        if allowed.contains(consent) { return consent }  // guard: consent-not-more-than-allowed
        return consent == .always && allowed.contains(.session) ? .session : .once
    }
}
