internal import WatchwordProtocol

/// Names one fetch for as long as the broker runs; never used again.
public struct FetchID: Hashable, Sendable, CustomStringConvertible {
    public let number: Int

    public init(number: Int) { self.number = number }

    /// As clients see it: `f17`.
    public init?(_ text: String) {
        guard text.hasPrefix("f"), let number = Int(text.dropFirst()), number > 0, "f\(number)" == text else {
            return nil
        }
        self.number = number
    }

    public var description: String { "f\(number)" }
}

/// Names the client that a fetch is for: what one client cancels is not cancelled for another (semantics rule 20).
public struct ClientTag: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// Names the program that a client is a connection of, as far as the broker knows it.
public struct ProgramTag: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// Who can be asked about a challenge, in this order (semantics rule 15).
public enum Respondent: Sendable, Hashable, CaseIterable {
    /// The handler that came with the fetch.
    case handler
    /// The client whose fetch it is.
    case client
    /// The agents of the desktop, one after the other.
    case agents

    var source: CredentialSource { self == .agents ? .agent : .client }
}
