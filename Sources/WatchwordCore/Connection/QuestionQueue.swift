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
