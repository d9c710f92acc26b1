internal import WatchwordProtocol

/// What a fetch is for, on whose behalf it is made, and what it may use. It never changes, so that everything that is part of
/// the fetch refers to the same one.
final class FetchIntent: Sendable {
    let id: FetchID
    let client: SpaceTurns.Client
    /// What of that which is kept it may use.
    let access: Access
    let plan: FetchPlan
    /// The last refusal of another fetch before this one: what comes later is news to it.
    let lastRefusalBefore: Int

    init(_ plan: FetchPlan, id: FetchID, client: SpaceTurns.Client, access: Access, lastRefusal: Int) {
        self.plan = plan
        self.id = id
        self.client = client
        self.access = access
        lastRefusalBefore = lastRefusal
    }

    /// What came with the fetch is for the origin, or the proxy, that it was given for (semantics rule 23).
    func isMeant(_ challenger: Challenger) -> Bool {
        switch (challenger, plan.proxy) {
        case (.server(let origin), _): origin == plan.url.origin
        case (.proxy(let endpoint), .named(let named)): endpoint == named
        case (.proxy, _): false
        }
    }

    /// A fetch that names a user is never made as another one.
    func namedUser(at challenger: Challenger) -> Account? {
        guard isMeant(challenger) else { return nil }
        return challenger.isProxy ? plan.proxyCredential?.shownAccount : plan.namedUser
    }

    /// What the fetch itself brings for a challenger: its own credential, then the URL's.
    func ownCredentials(at challenger: Challenger) -> [(credential: LoginCredential, source: CredentialSource)] {
        guard isMeant(challenger) else { return [] }
        var own: [(LoginCredential, CredentialSource)] = []
        if let credential = challenger.isProxy ? plan.proxyCredential : plan.credential {
            own.append((credential, .explicit))
        }
        if !challenger.isProxy, let userInfo = plan.userInfo, let password = userInfo.password {
            own.append((LoginCredential(user: userInfo.user, password: password), .url))
        }
        return own
    }

    /// Whether a cached credential is what the fetch itself would send; true where the fetch names nobody.
    func agrees(with cached: LoginCredential, at challenger: Challenger) -> Bool {
        guard isMeant(challenger) else { return true }
        if let own = challenger.isProxy ? plan.proxyCredential : plan.credential { return own.isSame(as: cached) }
        guard !challenger.isProxy, let userInfo = plan.userInfo else { return true }
        return Account(user: userInfo.user).admits(cached.account)
            && (userInfo.password.map { $0 == cached.secret } ?? true)
    }

    /// Whether what this client says by itself may be kept for good, for everybody: a program in a sandbox speaks for itself.
    func mayKeepForGood(_ source: CredentialSource) -> Bool { access.subject?.isSandboxed != true || source == .agent }
}

extension CredentialSource {
    /// Whether it was typed in for this fetch, or came with it.
    var isBrought: Bool { [.explicit, .url, .client, .agent].contains(self) }

    /// Whether it was remembered, by the session or in the keyring.
    var isStored: Bool { self == .session || self == .keyring }
}
