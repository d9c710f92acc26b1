internal import WatchwordProtocol

/// The authentication state of a connection. Fetches share a connection only if their states are equal.
struct ConnectionKey: Sendable, Equatable {
    struct Login: Sendable, Equatable {
        var challenger: Challenger
        var method: AuthenticationMethod
        var credential: LoginCredential

        static func == (left: Login, right: Login) -> Bool {
            left.challenger == right.challenger && left.method == right.method
                && left.credential.isSame(as: right.credential)  // guard: identity-credential
        }
    }

    /// The login at the proxy: a tunnel stays authenticated until it is closed.
    var tunnel: Login?
    /// The connection-level login (NTLM or Negotiate).
    var handshake: Login?
    var trust: TrustDecision?
    @IndirectOptional var certificate: CertificateCredential?
    /// The number of a program's connection to a front, if the program logs in by itself with a scheme that authenticates
    /// connections.
    var program: Int?
    /// The only fetch that may use the connection, because its client logs in with a scheme that the broker does not
    /// know and that may authenticate connections.
    var fetch: FetchID?
    /// Whether the TLS handshake is aborted if the server requests a client certificate.
    var refusesCertificateRequest = false
    /// The origin that the trust exception or the client certificate is for.
    var origin: Origin?

    static func == (left: ConnectionKey, right: ConnectionKey) -> Bool {
        // guard: identity-handshake
        left.tunnel == right.tunnel && left.handshake == right.handshake && left.trust == right.trust
            && left.program == right.program
            && left.fetch == right.fetch
            && left.refusesCertificateRequest == right.refusesCertificateRequest && left.origin == right.origin
            && (left.certificate == nil) == (right.certificate == nil)
            && (left.certificate.map { certificate in right.certificate.map(certificate.isSame) ?? false } ?? true)
    }

    var isEmpty: Bool {
        tunnel == nil && handshake == nil && trust == nil && certificate == nil && program == nil
            && fetch == nil && !refusesCertificateRequest && origin == nil
    }

    /// Whether the state contains a password or passphrase that must not be remembered, but would stay in memory as
    /// long as the connections.
    var holdsTransientSecret: Bool {
        logins.contains { $0.persistence == .none }
            || certificate.map { $0.persistence == .none && $0.passphrase != nil } ?? false
    }

    /// Whether the state contains a password or a passphrase.
    var holdsSecret: Bool { !logins.isEmpty || certificate?.passphrase != nil }

    private var logins: [LoginCredential] {
        [tunnel, handshake].compactMap(\.?.credential).filter { $0.form != .tickets }
    }
}

/// Assigns identity numbers; transfers with different numbers do not share connections. Bounded: the least recently
/// used identity is dropped.
struct ConnectionIdentities: Sendable {
    struct Entry: Sendable {
        let connectionKey: ConnectionKey
        let number: Int
        var lastUse: Duration
    }

    /// Ordered by last use, most recent last.
    private(set) var entries: [Entry] = []
    private var lastNumber = 0
    private(set) var forgotten: [ConnectionIdentity] = []

    mutating func identity(for connectionKey: ConnectionKey, now: Duration) -> ConnectionIdentity {
        guard !connectionKey.isEmpty else { return .none }
        if let index = entries.firstIndex(where: { $0.connectionKey == connectionKey }) {
            entries.append(entries.remove(at: index))
            entries[entries.count - 1].lastUse = now
        } else {
            lastNumber += 1
            entries.append(Entry(connectionKey: connectionKey, number: lastNumber, lastUse: now))
            if entries.count > Limits.connectionIdentities { drop(at: 0) }
        }
        return .number(lastUsed)
    }

    private var lastUsed: Int { entries[entries.count - 1].number }

    /// Drops the matching identities, so that no later fetch gets their connections.
    mutating func forget(where matches: (ConnectionKey) -> Bool) {
        for index in entries.indices.reversed() where matches(entries[index].connectionKey) { drop(at: index) }
    }

    /// Drops the identities that contain a secret and were not used for `Limits.secretIdentityIdle`.
    mutating func expire(now: Duration) {
        for index in entries.indices.reversed()
        where entries[index].connectionKey.holdsSecret && now - entries[index].lastUse >= Limits.secretIdentityIdle {
            drop(at: index)
        }
    }

    private mutating func drop(at index: Int) { forgotten.append(.number(entries.remove(at: index).number)) }

    mutating func takeForgotten() -> [ConnectionIdentity] {
        defer { forgotten = [] }
        return forgotten
    }
}
