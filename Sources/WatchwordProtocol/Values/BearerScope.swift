/// What a token is good for, or what a server wants one for (RFC 6750 section 3, `scope`): words in any order.
public struct BearerScope: Sendable, Hashable {
    private let words: Set<ExactText>

    /// `nil` where no word is named.
    public init?(_ text: String?) {
        words = Set((text ?? "").split(separator: " ").map { ExactText(String($0)) })
        if words.isEmpty { return nil }
    }

    /// Whether every word of `other` is among these.
    public func covers(_ other: BearerScope) -> Bool { words.isSuperset(of: other.words) }
}
