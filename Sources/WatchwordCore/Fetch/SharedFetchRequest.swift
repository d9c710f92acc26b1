public import WatchwordProtocol

/// The request of a fetch in the table: immutable, and shared by all parts of the fetch.
public typealias SharedFetchRequest = Boxed<FetchRequest>

extension SharedFetchRequest {
    /// Returns the methods that may be used for `challenger`; `nil` for all.
    func methods(at challenger: Challenger) -> [AuthenticationMethod]? {
        challenger.isProxy ? value.proxyMethods : value.methods
    }

    /// Whether the credentials of the request are for this challenger: the origin of its URL, or the proxy that it
    /// names (SEMANTICS rule 23).
    func matches(_ challenger: Challenger) -> Bool {
        switch (challenger, value.proxy) {
        case (.server(let origin), _): origin == value.url.origin  // guard: origin-of-credential
        case (.proxy(let endpoint), .named(let named)): endpoint == named
        case (.proxy, _): false
        }
    }

    /// Returns the user that the fetch names for `challenger`, if any. No other user's credential is sent there.
    func namedUser(at challenger: Challenger) -> Account? {
        guard matches(challenger) else { return nil }
        return challenger.isProxy ? value.proxyCredential?.shownAccount : value.namedUser
    }

    /// Returns the credentials that the request supplies for a challenger: its own first, then the one in the URL.
    func ownCredentials(at challenger: Challenger) -> [(credential: LoginCredential, source: CredentialSource)] {
        guard matches(challenger) else { return [] }
        var own: [(LoginCredential, CredentialSource)] = []
        if let credential = challenger.isProxy ? value.proxyCredential : value.credential {
            own.append((credential, .explicit))
        }
        if !challenger.isProxy, let userInfo = value.userInfo, let password = userInfo.password {
            own.append((LoginCredential(user: userInfo.user, password: password), .url))
        }
        return own
    }

    /// Whether a cached credential agrees with the user and password of the request. True if the request has none for
    /// this challenger.
    func agrees(with cached: LoginCredential, at challenger: Challenger) -> Bool {
        guard matches(challenger) else { return true }
        if let own = challenger.isProxy ? value.proxyCredential : value.credential { return own.isSame(as: cached) }
        guard !challenger.isProxy, let userInfo = value.userInfo else { return true }
        return Account(user: userInfo.user).admits(cached.account)
            && (userInfo.password.map { $0 == cached.secret } ?? true)
    }

    /// Whether an answer from `source` may be stored permanently, for all clients. The answer of a sandboxed program
    /// applies to that program alone.
    func mayStorePermanently(_ source: CredentialSource) -> Bool {  // guard: sandbox-stores-nothing-permanently
        value.access.subject?.isSandboxed != true || source == .agent
    }

    /// Whether an exception for a server's certificate in an answer from `source` may be permanent, and so for all
    /// programs. A program that needs consent decides for itself alone.
    func mayTrustPermanently(_ source: CredentialSource) -> Bool {  // guard: trust-for-all-programs
        value.access.subject == nil || source == .agent
    }
}

extension CredentialSource {
    /// Whether the credential came with the request or in an answer to a challenge.
    var isClientSupplied: Bool { [.explicit, .url, .client, .agent].contains(self) }

    /// Whether the credential comes from the netrc file or a command, which name a server but no realm.
    var isWithoutRealm: Bool { self == .netrc || self == .command }

    /// Whether the credential comes from the session cache or the keyring.
    var isStored: Bool { self == .session || self == .keyring }
}
