/// The questions that wait for a respondent which takes only so many at once (`maxPending`), in their order.
public struct QuestionQueue: Sendable, Equatable {
    public private(set) var waiting: [String] = []

    public init() {}

    /// Whether a new question can be delivered at once. It cannot pass those that wait.
    /// - Parameter limit: questions at once; `nil` without a limit.
    public func admits(delivered count: Int, limit: Int?) -> Bool { waiting.isEmpty && count < limit ?? .max }

    public mutating func append(_ question: String) { waiting.append(question) }

    /// Takes out the next question that can be delivered; `nil` when there is none.
    public mutating func next(delivered count: Int, limit: Int?) -> String? {
        guard !waiting.isEmpty, count < limit ?? .max else { return nil }
        return waiting.removeFirst()
    }

    /// Returns whether it was there.
    @discardableResult
    public mutating func remove(_ question: String) -> Bool {
        guard let index = waiting.firstIndex(of: question) else { return false }
        waiting.remove(at: index)
        return true
    }
}
