/// Where grants that last are written down. They hold no secret: who may use what.
public protocol GrantPort: Sendable {
    /// As they were kept last; empty where nothing was, or where nothing can be read.
    func standingGrants() -> [StandingGrant]

    /// Replaces what was kept: all of it, or nothing.
    func keep(_ grants: [StandingGrant]) throws(GrantFailure)
}

/// Why grants could not be written down.
public struct GrantFailure: Error, Sendable, Equatable {
    /// What happened, to which file, and what to do about it.
    public let text: String

    public init(_ text: String) { self.text = text }
}
