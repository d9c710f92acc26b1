/// How a client wants to get challenges.
public enum ChallengeDelivery: String, Sendable, CaseIterable {
    /// As `auth/challenge`, whose reply is the answer.
    case request
    /// As the notification `auth/pending`, answered by `auth/respond`.
    case notification
    /// As the result of `fetch/run`, answered by a second `fetch/run` that names the resume token.
    case result
    case none
}

/// When a subscriber is asked (semantics rules 3 to 5).
public enum ChallengeMode: String, Sendable, CaseIterable {
    /// When no valid credential is at hand.
    case classic
    /// At once, with the stored credential as the proposed one.
    case everything
}

/// What a client has said about the challenges of its own fetches.
public struct Subscription: Sendable, Equatable {
    public var delivery: ChallengeDelivery
    /// Schemes that it answers; `nil` means all.
    public var methods: [AuthenticationMethod]?
    /// Hosts for which it answers; `nil` means all.
    public var hosts: [HostPattern]?
    public var mode: ChallengeMode
    /// It answers `auth/canAuthenticate`.
    public var asksCanAuthenticate: Bool
    /// It answers `auth/useStorage`.
    public var asksUseStorage: Bool
    /// It answers `fetch/needBody`.
    public var asksNeedBody: Bool
    /// It answers `fetch/approveRedirect`.
    public var approvesRedirects = false
    /// How many questions it takes at once; `nil` without a limit.
    public var maxPending: Int?

    public init(
        delivery: ChallengeDelivery, methods: [AuthenticationMethod]? = nil, hosts: [HostPattern]? = nil,
        mode: ChallengeMode = .classic, asksCanAuthenticate: Bool = false, asksUseStorage: Bool = false,
        asksNeedBody: Bool = false, maxPending: Int? = nil
    ) {
        self.delivery = delivery
        self.methods = methods
        self.hosts = hosts
        self.mode = mode
        self.asksCanAuthenticate = asksCanAuthenticate
        self.asksUseStorage = asksUseStorage
        self.asksNeedBody = asksNeedBody
        self.maxPending = maxPending
    }

    /// Whether challenges of this space are for this subscriber.
    public func covers(_ space: ProtectionSpace) -> Bool {
        delivery != .none && (methods?.contains(space.authenticationMethod) ?? true)
            && (hosts?.contains { $0.matches(host: space.host, port: space.port) } ?? true)
    }
}
