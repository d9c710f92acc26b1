public import WatchwordProtocol

/// The recorded consents to the use of stored credentials, by program, protection space and user.
///
/// Performs no I/O. Bounded: the oldest grant that is not permanent is dropped first.
public struct ConsentBook: Sendable {
    /// The holder of a grant.
    enum Holder: Sendable, Hashable {
        indirect case subject(Subject)
        /// One connection of an unidentified program.
        case client(ClientTag)

        /// Whether both are the same program. A different file under the same name is a different program.
        func isSame(as other: Holder) -> Bool {
            switch (self, other) {
            case (.subject(let own), .subject(let other)): own.isSame(as: other)
            case (.client(let own), .client(let other)): own == other
            default: false
            }
        }
    }

    /// The use of a credential that consent is about.
    struct Use: Sendable, Hashable {
        var space: ProtectionSpace
        /// `nil` for credentials without a user: tokens, certificates, Kerberos tickets.
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
        /// The subject at the time of the consent.
        let subject: Subject
        let use: Use
        /// `session`, `always` or `no`.
        let consent: Consent
    }

    /// A period in which the same consent is not asked for again: after a question without an answer, or after the
    /// answer `no` for an unidentified program. A `nil` holder means all unidentified programs.
    private struct Cooldown: Sendable {
        let holder: Holder?
        let use: Use
        let end: Duration
    }

    private var grants = ChallengerTable<[Grant]>()
    private var cooldowns = ChallengerTable<[Cooldown]>()
    private var lastNumber = 0
    /// A counter that is incremented when grants are revoked or the session ends.
    private(set) var epoch = 0

    public init() {}

    /// Returns the recorded consent to this use, `no` during a cooldown, or `nil` if a person has to be asked.
    func consent(to use: Use, of access: Access, now: Duration) -> Consent? {
        let challenger = Challenger(use.space)
        let known = grants[challenger].last { $0.use == use && $0.holder.isSame(as: access.holder) }
        if let known { return known.consent }
        let isSilent = cooldowns[challenger].contains { silence in
            silence.end > now && silence.use == use
                && (silence.holder.map { $0.isSame(as: access.holder) } ?? access.isUnidentified)
        }
        return isSilent ? .no : nil
    }

    /// Whether a person has denied the use until the session ends, rather than not answered.
    func isDenied(_ use: Use, to access: Access) -> Bool {
        grants[Challenger(use.space)].last { $0.use == use && $0.holder.isSame(as: access.holder) }?.consent == .no
    }

    /// Records an answer other than `once`. Returns whether the permanent grants changed.
    mutating func record(_ consent: Consent, to use: Use, of access: Access, now: Duration) -> Bool {
        guard let subject = access.subject, consent != .once else { return false }
        if consent == .no, access.isUnidentified { startConsentCooldown(nil, use, now) }
        let before = permanent.count
        grants[Challenger(use.space)].removeAll { $0.use == use && $0.holder.isSame(as: access.holder) }
        add(Grant(number: lastNumber + 1, holder: access.holder, subject: subject, use: use, consent: consent))
        if grants.count > Limits.grants {
            let oldest = listing.first { $0.consent != .always } ?? listing.first
            grants.removeAll { $0.number == oldest?.number }
        }
        return consent == .always || permanent.count != before
    }

    private mutating func add(_ grant: Grant) {
        lastNumber = grant.number
        grants.append(grant, at: Challenger(grant.use.space))
    }

    /// Starts a cooldown after a question that had no respondent or was not answered in time.
    mutating func recordUnanswered(_ use: Use, of access: Access, now: Duration) {
        startConsentCooldown(access.isUnidentified ? nil : access.holder, use, now)
    }

    private mutating func startConsentCooldown(_ holder: Holder?, _ use: Use, _ now: Duration) {
        cooldowns.removeAll { $0.end <= now }
        let cooldown = Cooldown(holder: holder, use: use, end: now + Limits.consentCooldown)
        cooldowns.append(cooldown, at: Challenger(use.space), limit: Limits.grants)
    }

    // MARK: Listing and revoking

    /// All grants, oldest first.
    var listing: [Grant] { grants.all.sorted { $0.number < $1.number } }

    var permanent: [PermanentConsent] {
        listing.filter { $0.consent == .always }.map {
            PermanentConsent(subject: $0.subject, space: $0.use.space, user: $0.use.user)
        }
    }

    /// Loads the permanent grants of an earlier run.
    mutating func restore(_ permanent: [PermanentConsent]) {
        for grant in permanent.suffix(Limits.grants) {
            add(
                Grant(
                    number: lastNumber + 1, holder: .subject(grant.subject), subject: grant.subject,
                    use: Use(space: grant.space, user: grant.user), consent: .always))
        }
    }

    /// Revokes the matching grants and ends all cooldowns. Returns their number and whether a permanent grant was among
    /// them.
    mutating func revoke(where matches: (Grant) -> Bool) -> (count: Int, isPermanent: Bool) {
        let revoked = listing.filter(matches)
        grants.removeAll(where: matches)
        cooldowns = ChallengerTable()
        epoch += 1
        return (revoked.count, revoked.contains { $0.consent == .always })
    }

    /// Ends all cooldowns, so unanswered questions are asked again.
    mutating func endCooldowns() { cooldowns = ChallengerTable() }

    /// Drops all grants and denials that are not permanent, and ends all cooldowns.
    mutating func endSession() {
        grants.removeAll { $0.consent != .always }
        cooldowns = ChallengerTable()
        epoch += 1
    }

    mutating func forget(_ client: ClientTag) {
        guard !grants.isEmpty || !cooldowns.isEmpty else { return }
        let holder = Holder.client(client)
        grants.removeAll { $0.holder == holder }
        cooldowns.removeAll { $0.holder == holder }
    }
}

/// A grant that lasts until it is revoked.
public struct PermanentConsent: Sendable, Hashable {
    public var subject: Subject
    public var space: ProtectionSpace
    public var user: ExactText?

    public init(subject: Subject, space: ProtectionSpace, user: ExactText?) {
        self.subject = subject
        self.space = space
        self.user = user
    }
}
