public import WatchwordProtocol

/// The open challenges of one connection, and the ids of recently answered ones, which distinguish a late answer from
/// one to an unknown challenge.
public struct PendingChallenges: Sendable {
    public struct Pending: Sendable, Equatable {
        public var params: AuthChallengeParams
        /// The JSON-RPC request that carries the challenge; `nil` if it was sent as a notification.
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

    /// Removes a challenge that was answered or timed out. Returns `nil` if it was not open.
    public mutating func settle(_ challengeID: String) -> Pending? {
        guard let pending = remove(challengeID) else { return nil }
        if answered.count >= Self.rememberedAnswers { answered.removeFirst() }
        answered.append(challengeID)
        return pending
    }

    /// Removes a challenge whose fetch has ended.
    public mutating func withdraw(_ challengeID: String) -> Pending? { remove(challengeID) }

    /// Returns the result for an answer to a challenge that is not open.
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

/// The queue of questions for a respondent that limits how many it receives at once (`maxPending`).
public struct QuestionQueue: Sendable, Equatable {
    public private(set) var waiting: [String] = []

    public init() {}

    /// Whether a new question can be delivered now. It must not overtake queued questions.
    /// - Parameter limit: the number of questions at once; `nil` for no limit.
    public func admits(delivered count: Int, limit: Int?) -> Bool { waiting.isEmpty && count < limit ?? .max }

    public mutating func append(_ question: String) { waiting.append(question) }

    /// Removes and returns the next question that can be delivered; `nil` if there is none.
    public mutating func next(delivered count: Int, limit: Int?) -> String? {
        guard !waiting.isEmpty, count < limit ?? .max else { return nil }
        return waiting.removeFirst()
    }

    /// Removes a question. Returns whether it was queued.
    @discardableResult
    public mutating func remove(_ question: String) -> Bool {
        guard let index = waiting.firstIndex(of: question) else { return false }
        waiting.remove(at: index)
        return true
    }
}
