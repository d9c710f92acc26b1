internal import WatchwordProtocol

/// What makes a connection somebody's. Two fetches share connections only if all of it is the same.
struct ConnectionMarks: Sendable, Equatable {
    struct Login: Sendable, Equatable {
        var challenger: Challenger
        var method: AuthenticationMethod
        var credential: LoginCredential

        static func == (left: Login, right: Login) -> Bool {
            left.challenger == right.challenger && left.method == right.method
                && left.credential.isSame(as: right.credential)
        }
    }

    /// A tunnel stays authorised for as long as it lasts.
    var tunnel: Login?
    /// The login that NTLM or Negotiate has made.
    var handshake: Login?
    var trust: TrustDecision?
    var certificate: CertificateCredential?
    /// Made so that a server which asks for a certificate ends the handshake.
    var refusesCertificateRequest = false
    /// Where the trust or the certificate is for.
    var origin: Origin?

    static func == (left: ConnectionMarks, right: ConnectionMarks) -> Bool {
        left.tunnel == right.tunnel && left.handshake == right.handshake && left.trust == right.trust
            && left.refusesCertificateRequest == right.refusesCertificateRequest && left.origin == right.origin
            && (left.certificate == nil) == (right.certificate == nil)
            && (left.certificate.map { certificate in right.certificate.map(certificate.isSame) ?? false } ?? true)
    }

    var isEmpty: Bool { self == ConnectionMarks() }

    /// A password or a passphrase that is not to be remembered. It would stay as long as the connections do.
    var holdsTransientSecret: Bool {
        logins.contains { $0.persistence == .none }
            || certificate.map { $0.persistence == .none && $0.passphrase != nil } ?? false
    }

    /// A password, or a passphrase.
    var holdsSecret: Bool { !logins.isEmpty || certificate?.passphrase != nil }

    private var logins: [LoginCredential] {
        [tunnel, handshake].compactMap(\.?.credential).filter { $0.form != .tickets }
    }
}

/// The numbers under which the adapter keeps connections apart. Bounded: the identity unused for longest is forgotten.
struct ConnectionIdentities: Sendable {
    private struct Entry: Sendable {
        let marks: ConnectionMarks
        let number: Int
        var lastUse: Duration
    }

    /// The one used last at the end.
    private var entries: [Entry] = []
    private var lastNumber = 0
    private(set) var forgotten: [ConnectionIdentity] = []

    var count: Int { entries.count }

    mutating func identity(for marks: ConnectionMarks, now: Duration) -> ConnectionIdentity {
        guard !marks.isEmpty else { return .none }
        if let index = entries.firstIndex(where: { $0.marks == marks }) {
            entries.append(entries.remove(at: index))
            entries[entries.count - 1].lastUse = now
        } else {
            lastNumber += 1
            entries.append(Entry(marks: marks, number: lastNumber, lastUse: now))
            if entries.count > Limits.connectionIdentities { drop(at: 0) }
        }
        return .number(lastUsed)
    }

    private var lastUsed: Int { entries[entries.count - 1].number }

    /// Nobody gets the connections of those that are meant any more.
    mutating func forget(where isMeant: (ConnectionMarks) -> Bool) {
        for index in entries.indices.reversed() where isMeant(entries[index].marks) { drop(at: index) }
    }

    /// Forgets the identities that hold a secret and were not used for `Limits.secretIdentityIdle`.
    mutating func expire(now: Duration) {
        for index in entries.indices.reversed()
        where entries[index].marks.holdsSecret && now - entries[index].lastUse >= Limits.secretIdentityIdle {
            drop(at: index)
        }
    }

    private mutating func drop(at index: Int) { forgotten.append(.number(entries.remove(at: index).number)) }

    mutating func takeForgotten() -> [ConnectionIdentity] {
        defer { forgotten = [] }
        return forgotten
    }
}
