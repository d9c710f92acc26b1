internal import WatchwordProtocol

/// A public key that the user has accepted in certificates of one origin.
public struct TrustedKey: Sendable, Hashable {
    public var origin: Origin
    public var spkiSha256: [UInt8]

    public init(origin: Origin, spkiSha256: [UInt8]) {
        self.origin = origin
        self.spkiSha256 = spkiSha256
    }

    /// Parses the form that the property `line` returns; `nil` if it is malformed.
    public init?(line: some StringProtocol) {
        let words = line.split(separator: " ")
        guard words.count == 2, let url = try? FetchURL(String(words[0])), url.origin.scheme == .https, url.path == "/",
            let hash = Hexadecimal.bytes(String(words[1])), hash.count == 32
        else { return nil }
        self.init(origin: url.origin, spkiSha256: hash)
    }

    /// The origin, a space, and the SHA-256 hash of the key in hexadecimal.
    public var line: String { "\(origin.text) \(Hexadecimal.text(spkiSha256))" }
}

/// Remembered trust exceptions and client certificates, by origin. Both lists are bounded: the oldest entry of a single
/// partition is dropped first, then the oldest shared one, and permanent exceptions last.
struct TrustAndCertificateCache: Sendable {
    private struct Exception: Sendable {
        let number: Int
        let key: TrustedKey
        /// The partition; `nil` for the shared one.
        let owner: Partition?
        let isPermanent: Bool
        let since: Duration
    }

    /// A client certificate that the server at one origin has accepted.
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

    /// Returns the accepted key at `origin`, and whether it is accepted permanently.
    func trustedKey(at origin: Origin, owner: Partition?) -> (spkiSha256: [UInt8], isPermanent: Bool)? {
        // guard: trust-owner, trust-origin
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

    /// Forgets the exceptions at `origin`. Returns whether there were any.
    mutating func forgetTrust(at origin: Origin) -> Bool {
        let count = exceptions.count
        exceptions.removeAll { $0.key.origin == origin }
        return exceptions.count < count
    }

    /// The permanently accepted keys.
    var permanentKeys: [TrustedKey] { exceptions.filter(\.isPermanent).map(\.key) }

    // MARK: Client certificates

    func certificate(at origin: Origin, owner: Partition?) -> CertificateCredential? {
        // guard: certificate-origin, certificate-owner
        certificates.first { $0.origin == origin && $0.owner == owner }?.certificate
    }

    /// Remembers a certificate that the server has accepted. Returns whether this changed anything but the time of use.
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
            // Certificates of single partitions are dropped before shared ones.
            certificates.remove(at: certificates.firstIndex { $0.owner != nil } ?? 0)
        }
        return true
    }

    /// Forgets the certificate at `origin`, unless another one has replaced it. Returns whether it was there.
    @discardableResult
    mutating func forget(_ certificate: CertificateCredential, at origin: Origin) -> Bool {
        let count = certificates.count
        certificates.removeAll { $0.origin == origin && $0.certificate.isSame(as: certificate) }
        return certificates.count < count
    }

    // MARK: Listing

    /// All entries, oldest first.
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

    // MARK: Expiry

    mutating func expire(_ limits: SessionLimits, now: Duration) {
        exceptions.removeAll { !$0.isPermanent && now - $0.since >= limits.lifetime }
        certificates.removeAll { !limits.allow(since: $0.since, lastUse: $0.lastUse, now: now) }
    }

    /// Drops the decisions that are limited to the session, match `origin` and `owner`, and were made at `since` or
    /// later; `nil` matches all. Returns the number of dropped entries.
    mutating func clear(origin: Origin? = nil, owner: Partition? = nil, since: Duration? = nil) -> Int {
        let before = exceptions.count + certificates.count
        func matches(_ place: Origin, _ holder: Partition?, _ time: Duration) -> Bool {
            (origin == nil || place == origin) && (owner == nil || holder == owner)
                && since.map { time >= $0 } ?? true
        }
        exceptions.removeAll { !$0.isPermanent && matches($0.key.origin, $0.owner, $0.since) }
        certificates.removeAll { matches($0.origin, $0.owner, $0.since) }
        return before - exceptions.count - certificates.count
    }
}
