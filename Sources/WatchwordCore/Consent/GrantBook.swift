public import WatchwordProtocol

/// What people have said to the use of what is kept, by program, protection space and user.
///
/// Without I/O. Bounded: the oldest for the session goes first.
public struct GrantBook: Sendable {
    /// Who has a grant.
    enum Holder: Sendable, Hashable {
        indirect case subject(Subject)
        /// A program that is not told from others: this connection of it.
        case client(ClientTag)

        /// Another file under the same name is another program.
        func isSame(as other: Holder) -> Bool {
            switch (self, other) {
            case (.subject(let own), .subject(let other)): own.isSame(as: other)
            case (.client(let own), .client(let other)): own == other
            default: false
            }
        }
    }

    /// What is asked about.
    struct Use: Sendable, Hashable {
        var space: ProtectionSpace
        /// `nil` for what has no user: a token, a certificate, tickets.
        var user: ExactText?

        static func == (left: Use, right: Use) -> Bool {
            left.space == right.space && (left.user == nil) == (right.user == nil)
                && (left.user ?? "").utf8.elementsEqual((right.user ?? "").utf8)
        }

        func hash(into hasher: inout Hasher) { hasher.combine(space) }
    }

    struct Grant: Sendable {
        let number: Int
        let holder: Holder
        /// As it was when somebody consented.
        let subject: Subject
        let use: Use
        /// `session`, `always` or `no`.
        let consent: Consent
    }

    /// A question that nobody has answered, or that was answered with no for somebody who is not told from others.
    private struct Silence: Sendable {
        let holder: Holder?
        let use: Use
        let end: Duration
    }

    private var grants: [Grant] = []
    private var silences: [Silence] = []
    private var lastNumber = 0
    /// Rises when what was said is taken back.
    private(set) var epoch = 0

    public init() {}

    /// What is known of this use; `nil` where somebody has to be asked. `no` while it is too early to ask again.
    func consent(to use: Use, of access: Access, now: Duration) -> Consent? {
        let known = grants.last { $0.use == use && $0.holder.isSame(as: access.holder) }
        if let known { return known.consent }
        let isSilent = silences.contains { silence in
            silence.end > now && silence.use == use
                && (silence.holder.map { $0.isSame(as: access.holder) } ?? access.isNameless)
        }
        return isSilent ? .no : nil
    }

    /// Returns whether that changes what is granted for good.
    mutating func note(_ consent: Consent, to use: Use, of access: Access, now: Duration) -> Bool {
        guard let subject = access.subject, consent != .once else { return false }
        if consent == .no, access.isNameless { noteSilence(nil, use, now) }
        let before = permanent.count
        grants.removeAll { $0.use == use && $0.holder.isSame(as: access.holder) }
        lastNumber += 1
        grants.append(
            Grant(number: lastNumber, holder: access.holder, subject: subject, use: use, consent: consent))
        if grants.count > Limits.grants { grants.remove(at: grants.firstIndex { $0.consent != .always } ?? 0) }
        return consent == .always || permanent.count != before
    }

    /// Nobody was there, or nobody has answered in time.
    mutating func noteUnanswered(_ use: Use, of access: Access, now: Duration) {
        noteSilence(access.isNameless ? nil : access.holder, use, now)
    }

    private mutating func noteSilence(_ holder: Holder?, _ use: Use, _ now: Duration) {
        silences.removeAll { $0.end <= now }
        silences.append(Silence(holder: holder, use: use, end: now + Limits.consentSilence))
        let surplus = OriginShare.surplus(in: silences, limit: Limits.grants) { Challenger($0.use.space) }
        if let surplus { silences.remove(at: surplus) }
    }

    // MARK: By hand

    /// What is known, in the order in which it came.
    var listing: [Grant] { grants }

    var permanent: [StandingGrant] {
        grants.filter { $0.consent == .always }.map {
            StandingGrant(subject: $0.subject, space: $0.use.space, user: $0.use.user)
        }
    }

    /// Takes over what was granted for good.
    mutating func restore(_ standing: [StandingGrant]) {
        for grant in standing.suffix(Limits.grants) {
            lastNumber += 1
            grants.append(
                Grant(
                    number: lastNumber, holder: .subject(grant.subject), subject: grant.subject,
                    use: Use(space: grant.space, user: grant.user), consent: .always))
        }
    }

    /// Returns how many were there, and whether that changes what is granted for good.
    mutating func revoke(where isMeant: (Grant) -> Bool) -> (count: Int, isPermanent: Bool) {
        let revoked = grants.filter(isMeant)
        grants.removeAll(where: isMeant)
        silences = []
        epoch += 1
        return (revoked.count, revoked.contains { $0.consent == .always })
    }

    /// Questions that nobody has answered are put again.
    mutating func forgetSilences() { silences = [] }

    /// What was for the session ends with it.
    mutating func endSession() {
        grants.removeAll { $0.consent != .always }
        silences = []
        epoch += 1
    }

    mutating func forget(_ client: ClientTag) {
        guard !grants.isEmpty || !silences.isEmpty else { return }
        let holder = Holder.client(client)
        grants.removeAll { $0.holder == holder }
        silences.removeAll { $0.holder == holder }
    }
}

/// A grant that lasts until somebody revokes it.
public struct StandingGrant: Sendable, Hashable {
    public var subject: Subject
    public var space: ProtectionSpace
    public var user: ExactText?

    public init(subject: Subject, space: ProtectionSpace, user: ExactText?) {
        self.subject = subject
        self.space = space
        self.user = user
    }
}
