public import JSONText

/// `fetch/attach`: makes a connection carry the body of a fetch that was begun with `fetch/start`.
public struct FetchAttachParams: Sendable, Equatable {
    public enum Side: String, Sendable, CaseIterable {
        /// The broker writes the response's body, and closes.
        case response
        /// The client writes the request's body, and shuts down its writing side.
        case request
    }

    public var token: String
    public var side: Side

    public init(token: String, side: Side) {
        self.token = token
        self.side = side
    }

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        token = try members.required("token", members.string("token"))
        side = try members.required("side", members.choice("side", as: Side.self))
    }

    public var json: JSON { ["token": .string(token), "side": .string(side.rawValue)] }
}
