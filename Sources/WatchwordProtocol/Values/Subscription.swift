/// The delivery of challenges to a client.
public enum ChallengeDelivery: String, Sendable, CaseIterable {
    /// Sends the request `auth/challenge`, whose reply is the answer.
    case request
    /// Sends the notification `auth/pending`, which is answered with `auth/respond`.
    case notification
    case none
}

/// The challenges for which a subscriber is asked (SEMANTICS rules 3 to 5).
public enum ChallengeMode: String, Sendable, CaseIterable {
    /// Only challenges for which no valid credential is available.
    case classic
    /// Every challenge, with the stored credential as the proposed one.
    case everything
}

/// A client's subscription to the challenges of its own fetches, or the handler of one fetch.
public struct Subscription: Sendable, Equatable {
    public var delivery: ChallengeDelivery
    /// The methods whose challenges the client answers; `nil` means all.
    public var methods: [AuthenticationMethod]?
    /// The hosts whose challenges the client answers; `nil` means all.
    public var hosts: [HostPattern]?
    public var mode: ChallengeMode
    /// Whether the client answers `auth/canAuthenticate`.
    public var asksCanAuthenticate: Bool
    /// Whether the client answers `auth/useStorage`.
    public var asksUseStorage: Bool
    /// Whether the client answers `fetch/needBody`.
    public var asksNeedBody: Bool
    /// Whether the client answers `fetch/approveRedirect`.
    public var approvesRedirects = false
    /// The number of simultaneous questions the client accepts; `nil` for no limit.
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

    /// Whether the subscription includes challenges of `space`.
    public func covers(_ space: ProtectionSpace) -> Bool {
        delivery != .none && (methods?.contains(space.authenticationMethod) ?? true)
            && (hosts?.contains { $0.matches(host: space.host, port: space.port) } ?? true)
    }
}
