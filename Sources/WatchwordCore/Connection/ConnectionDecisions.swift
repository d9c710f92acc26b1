internal import WatchwordProtocol

/// A certificate that somebody has accepted for a server, by its key.
public struct TrustedKey: Sendable, Hashable {
    public var origin: Origin
    public var spkiSha256: [UInt8]

    public init(origin: Origin, spkiSha256: [UInt8]) {
        self.origin = origin
        self.spkiSha256 = spkiSha256
    }

    /// Reads what `line` has written.
    public init?(line: some StringProtocol) {
        let words = line.split(separator: " ")
        guard words.count == 2, let url = try? FetchURL(String(words[0])), url.origin.scheme == .https, url.path == "/",
            let hash = Hexadecimal.bytes(String(words[1])), hash.count == 32
        else { return nil }
        self.init(origin: url.origin, spkiSha256: hash)
    }

    /// `https://host:port` and the hash in hexadecimal.
    public var line: String { "\(origin.text) \(Hexadecimal.text(spkiSha256))" }
}

/// What is remembered about the connections to servers: exceptions for certificates, and which client certificate goes where.
/// Bounded: the oldest goes first.
struct ConnectionDecisions: Sendable {
    private struct Exception: Sendable {
        let number: Int
        let key: TrustedKey
        /// In whose part it is; `nil` for that of all.
        let owner: Partition?
        let isPermanent: Bool
        let since: Duration
    }

    private struct Shown: Sendable {
        let number: Int
        let origin: Origin
        let owner: Partition?
        let certificate: CertificateCredential
        let since: Duration
        var lastUse: Duration
    }

    private var exceptions: [Exception] = []
    private var certificates: [Shown] = []
    private var lastNumber = 0

    var isEmpty: Bool { certificates.isEmpty && !exceptions.contains { !$0.isPermanent } }

    // MARK: Trust

    /// The key that is good enough at `origin`, and whether that is so for good.
    func trustedKey(at origin: Origin, owner: Partition?) -> (spkiSha256: [UInt8], isPermanent: Bool)? {
        let found = exceptions.last { $0.key.origin == origin && ($0.isPermanent || $0.owner == owner) }
        return found.map { ($0.key.spkiSha256, $0.isPermanent) }
    }

    mutating func trust(_ key: TrustedKey, isPermanent: Bool, owner: Partition?, now: Duration) {
        exceptions.removeAll {
            $0.key.origin == key.origin && ($0.isPermanent ? isPermanent : isPermanent || $0.owner == owner)
        }
        lastNumber += 1
        exceptions.append(
            Exception(
                number: lastNumber, key: key, owner: isPermanent ? nil : owner, isPermanent: isPermanent, since: now))
        if exceptions.count > Limits.rememberedDecisions {
            let ofOne = exceptions.firstIndex { !$0.isPermanent && $0.owner != nil }
            exceptions.remove(at: ofOne ?? exceptions.firstIndex { !$0.isPermanent } ?? 0)
        }
    }

    /// Returns whether there was one.
    mutating func forgetTrust(at origin: Origin) -> Bool {
        let count = exceptions.count
        exceptions.removeAll { $0.key.origin == origin }
        return exceptions.count < count
    }

    /// Those that hold for good.
    var permanentKeys: [TrustedKey] { exceptions.filter(\.isPermanent).map(\.key) }

    // MARK: Client certificates

    func certificate(at origin: Origin, owner: Partition?) -> CertificateCredential? {
        certificates.first { $0.origin == origin && $0.owner == owner }?.certificate
    }

    /// Returns whether that is news.
    @discardableResult
    mutating func remember(
        _ certificate: CertificateCredential, at origin: Origin, owner: Partition?, now: Duration
    ) -> Bool {
        let known = certificates.firstIndex { $0.origin == origin && $0.owner == owner }
        if let known, certificates[known].certificate.isSame(as: certificate),
            certificates[known].certificate.acceptedContent == certificate.acceptedContent
        {
            certificates[known].lastUse = now
            return false
        }
        if let known { certificates.remove(at: known) }
        lastNumber += 1
        certificates.append(
            Shown(
                number: lastNumber, origin: origin, owner: owner, certificate: certificate, since: now, lastUse: now))
        if certificates.count > Limits.rememberedDecisions {
            // What programs have for themselves goes before what all have.
            certificates.remove(at: certificates.firstIndex { $0.owner != nil } ?? 0)
        }
        return true
    }

    /// If it is still this one. Returns whether it was there.
    @discardableResult
    mutating func forget(_ certificate: CertificateCredential, at origin: Origin) -> Bool {
        let count = certificates.count
        certificates.removeAll { $0.origin == origin && $0.certificate.isSame(as: certificate) }
        return certificates.count < count
    }

    // MARK: By hand

    /// Everything that is remembered, in the order in which it came.
    var all: [ConnectionDecision] {
        let trusted = exceptions.map {
            ConnectionDecision(number: $0.number, owner: $0.owner, what: .trust($0.key, isPermanent: $0.isPermanent))
        }
        let shown = certificates.map {
            ConnectionDecision(
                number: $0.number, owner: $0.owner, what: .certificate($0.certificate, $0.origin), lastUse: $0.lastUse)
        }
        return (trusted + shown).sorted { $0.number < $1.number }
    }

    mutating func forget(_ decision: ConnectionDecision) {
        exceptions.removeAll { $0.number == decision.number }
        certificates.removeAll { $0.number == decision.number }
    }

    // MARK: The end of them

    mutating func expire(_ limits: SessionLimits, now: Duration) {
        exceptions.removeAll { !$0.isPermanent && now - $0.since >= limits.lifetime }
        certificates.removeAll { !limits.allow(since: $0.since, lastUse: $0.lastUse, now: now) }
    }

    /// What was for the session: all, or at one origin, or of one client, or decided at `since` or later. Returns how many.
    mutating func clear(origin: Origin? = nil, owner: Partition? = nil, since: Duration? = nil) -> Int {
        let before = exceptions.count + certificates.count
        func isMeant(_ place: Origin, _ holder: Partition?, _ time: Duration) -> Bool {
            (origin == nil || place == origin) && (owner == nil || holder == owner)
                && since.map { time >= $0 } ?? true
        }
        exceptions.removeAll { !$0.isPermanent && isMeant($0.key.origin, $0.owner, $0.since) }
        certificates.removeAll { isMeant($0.origin, $0.owner, $0.since) }
        return before - exceptions.count - certificates.count
    }
}
