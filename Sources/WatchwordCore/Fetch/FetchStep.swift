public import WatchwordProtocol

/// What to do next for a fetch, and what to tell about it first.
public struct FetchStep: Sendable, Equatable {
    public enum Event: Sendable, Equatable {
        /// A redirect is followed.
        case redirected(status: Int, from: String, to: String)
        /// The response that becomes the result.
        case responded(status: Int, headers: [HeaderField])
    }

    public enum Action: Sendable, Equatable {
        /// Make this exchange; then `received` or `failed`.
        case transfer(TransferRequest)
        /// Ask this; then `answered`.
        case ask(Challenge)
        case finish(FetchResponse)
        case fail(FetchFailure)
    }

    public var events: [Event]
    public var action: Action

    init(_ action: Action, events: [Event] = []) {
        self.events = events
        self.action = action
    }
}

/// How a fetch ended well.
public struct FetchResponse: Sendable, Equatable {
    public var response: TransferResponse
    /// Of the last hop.
    public var url: FetchURL
    public var authentication: FetchRunResult.Authentication?
    public var exchanges: Int
}

/// What a machine cannot know by itself.
public struct FetchEnvironment: Sendable {
    /// Since any one start, never going back.
    public var now: Duration
    /// At least 128 random bits as text, fresh for each call (RFC 7616 section 5.12).
    public var makeClientNonce: @Sendable () -> String

    public init(now: Duration, makeClientNonce: @escaping @Sendable () -> String) {
        self.now = now
        self.makeClientNonce = makeClientNonce
    }
}
