public import WatchwordProtocol

/// The open questions of one connection, and which ones were answered lately, so that a late answer can be told from one to
/// a question that never was.
public struct PendingChallenges: Sendable {
    public struct Pending: Sendable, Equatable {
        public var params: AuthChallengeParams
        /// The JSON-RPC request that carries it; `nil` when it went out as a notification.
        public var request: Int?
    }

    private static let rememberedAnswers = 256

    private var open: [String: Pending] = [:]
    private var byRequest: [Int: String] = [:]
    private var answered: [String] = []

    public init() {}

    public var count: Int { open.count }

    public var all: [AuthChallengeParams] { open.values.map(\.params).sorted { $0.challengeID < $1.challengeID } }

    public mutating func add(_ params: AuthChallengeParams, request: Int?) {
        open[params.challengeID] = Pending(params: params, request: request)
        if let request { byRequest[request] = params.challengeID }
    }

    public func challengeID(ofRequest request: Int) -> String? { byRequest[request] }

    /// Takes a question off the table because it was answered, or its time has run out. `nil` when it was not open.
    public mutating func settle(_ challengeID: String) -> Pending? {
        guard let pending = remove(challengeID) else { return nil }
        if answered.count >= Self.rememberedAnswers { answered.removeFirst() }
        answered.append(challengeID)
        return pending
    }

    /// Takes a question off the table because its fetch has ended.
    public mutating func withdraw(_ challengeID: String) -> Pending? { remove(challengeID) }

    /// What an answer to a question that is not open is told.
    public func verdict(onLateAnswer challengeID: String) -> AuthRespondResult {
        answered.contains(challengeID) ? .answered : .gone
    }

    public func isOpen(_ challengeID: String) -> Bool { open[challengeID] != nil }

    private mutating func remove(_ challengeID: String) -> Pending? {
        guard let pending = open.removeValue(forKey: challengeID) else { return nil }
        if let request = pending.request { byRequest[request] = nil }
        return pending
    }
}
