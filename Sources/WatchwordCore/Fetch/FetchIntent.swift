internal import WatchwordProtocol

/// The request of a client, the client itself, and the stored credentials that the fetch may use. It never changes, so that all
/// parts of a fetch share one.
final class FetchIntent: Sendable {
    let id: FetchID
    let client: SpaceTurns.Client
    /// The stored credentials that this fetch may use.
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

    /// Whether credentials of the request are for this challenger: its origin, or the proxy it names (semantics rule 23).
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

    /// The credentials that the request supplies for a challenger: its own first, then the one in the URL.
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

    /// Whether a cached credential is the one the request supplies; true if the request names no user.
    func agrees(with cached: LoginCredential, at challenger: Challenger) -> Bool {
        guard isMeant(challenger) else { return true }
        if let own = challenger.isProxy ? plan.proxyCredential : plan.credential { return own.isSame(as: cached) }
        guard !challenger.isProxy, let userInfo = plan.userInfo else { return true }
        return Account(user: userInfo.user).admits(cached.account)
            && (userInfo.password.map { $0 == cached.secret } ?? true)
    }

    /// Whether an answer from `source` may be stored permanently, for all clients: a sandboxed program answers only for itself.
    func mayKeepForGood(_ source: CredentialSource) -> Bool { access.subject?.isSandboxed != true || source == .agent }
}

extension CredentialSource {
    /// Whether the credential came with the request or in an answer to its challenge.
    var isBrought: Bool { [.explicit, .url, .client, .agent].contains(self) }

    /// Whether the credential comes from the session cache or the keyring.
    var isStored: Bool { self == .session || self == .keyring }
}
