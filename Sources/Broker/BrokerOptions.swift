public import JSONText
public import WatchwordProtocol

/// What the daemon can set.
public struct BrokerOptions: Sendable {
    /// Of the program, as clients and `server/status` see it.
    public var version: String
    /// How long a question waits for its answer.
    public var challengeDeadline: Duration
    /// What `rpc.discover` returns: the OpenRPC document.
    public var document: JSON

    public init(version: String, challengeDeadline: Duration = Limits.challengeDeadline, document: JSON = [:]) {
        self.version = version
        self.challengeDeadline = challengeDeadline
        self.document = document
    }
}
