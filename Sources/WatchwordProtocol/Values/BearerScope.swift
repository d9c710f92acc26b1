/// The scope of a token, or the scope that a server requires (RFC 6750 section 3): a set of words.
public struct BearerScope: Sendable, Hashable {
    private let words: Set<ExactText>

    /// Returns `nil` if `text` contains no word.
    public init?(_ text: String?) {
        words = Set((text ?? "").split(separator: " ").map { ExactText(String($0)) })
        if words.isEmpty { return nil }
    }

    /// The words, sorted.
    public var names: [String] { words.map(\.string).sorted() }

    /// Whether this scope contains every word of `other`.
    public func covers(_ other: BearerScope) -> Bool { words.isSuperset(of: other.words) }
}
