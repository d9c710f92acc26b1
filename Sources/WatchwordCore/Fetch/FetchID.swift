internal import WatchwordProtocol

/// The identifier of a fetch; never reused while the broker runs.
public struct FetchID: Hashable, Sendable, CustomStringConvertible {
    public let number: Int

    public init(number: Int) { self.number = number }

    /// Parses the form that clients use, such as `f17`.
    public init?(_ text: String) {
        guard text.hasPrefix("f"), let number = Int(text.dropFirst()), number > 0, "f\(number)" == text else {
            return nil
        }
        self.number = number
    }

    public var description: String { "f\(number)" }
}

/// The identifier of the client that made a fetch. If one client cancels a challenge, the fetches of others are not
/// cancelled (SEMANTICS rule 20).
public struct ClientTag: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// The identifier of the program behind a client. The connections of one process have the same identifier.
public struct ProgramTag: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// The respondents of a challenge, in the order in which they are asked (SEMANTICS rule 15).
public enum Respondent: Sendable, Hashable, CaseIterable {
    /// The handler of the fetch itself.
    case handler
    /// The client that made the fetch.
    case client
    /// The desktop agents, one after the other.
    case agents

    var source: CredentialSource { self == .agents ? .agent : .client }
}
