public import JSONText

/// A received JSON-RPC message, parsed once. Invalid messages are values too.
public enum IncomingMessage: Sendable, Equatable {
    case request(id: RequestID, method: String, params: JSON?)
    case notification(method: String, params: JSON?)
    case result(id: RequestID, JSON)
    case error(id: RequestID, RPCError)
    /// A malformed reply: it has both `result` and `error`, an invalid error object, or no `"jsonrpc":"2.0"`. It is not
    /// answered, because the peer could take an error with this id for the reply to one of its own requests.
    case malformedReply(id: RequestID)
    /// A message with an id but without `method`, `result` and `error`: an incomplete reply if a request of this side has that
    /// id, otherwise an incomplete request.
    case empty(id: RequestID, reason: String)
    /// An invalid message. It is answered with error -32600 and `id`, which is `null` if no id could be read.
    case invalid(id: RequestID, reason: String)

    /// Parses a message that is not a batch (JSON-RPC 2.0 sections 4 and 5).
    public init(_ json: JSON) {
        guard json.kind == .object else {
            self = .invalid(id: .null, reason: "a message must be an object")
            return
        }
        let idMember = json["id"]
        let id = idMember.flatMap(RequestID.init)
        let (method, params) = (json["method"], json["params"])
        let problem = Self.problem(of: json, method, params, idIsInvalid: idMember != nil && id == nil)
        if let problem {
            self = Self.wrong(json, id: id, problem)
        } else if let method = method?.string {
            self =
                id.map { .request(id: $0, method: method, params: params) }
                ?? .notification(method: method, params: params)
        } else {
            self = Self.reply(json, id: id ?? .null)
        }
    }

    private static func wrong(_ json: JSON, id: RequestID?, _ problem: String) -> IncomingMessage {
        if json["method"] != nil { return .invalid(id: id ?? .null, reason: problem) }
        if json["result"] != nil || json["error"] != nil { return .malformedReply(id: id ?? .null) }
        return id.map { .empty(id: $0, reason: problem) } ?? .invalid(id: .null, reason: problem)
    }

    private static func problem(of json: JSON, _ method: JSON?, _ params: JSON?, idIsInvalid: Bool) -> String? {
        if idIsInvalid { return "id must be a string, an integer or null" }
        if json["jsonrpc"]?.string != "2.0" { return "jsonrpc must be the string \"2.0\"" }
        if let method {
            if method.kind != .string { return "method must be a string" }
            if let params, params.kind != .object, params.kind != .array {
                return "params must be an object or an array"
            }
        } else if json["result"] == nil && json["error"] == nil {
            return "a message must have a method, a result or an error"
        }
        return nil
    }

    private static func reply(_ json: JSON, id: RequestID) -> IncomingMessage {
        switch (json["result"], json["error"].flatMap(RPCError.init)) {
        case (let result?, nil) where json["error"] == nil: .result(id: id, result)
        case (nil, let error?): .error(id: id, error)
        default: .malformedReply(id: id)
        }
    }
}

/// The id that connects a reply with its request (JSON-RPC 2.0 section 4). The reply preserves its JSON type: `1` and `"1"` are
/// different ids.
public enum RequestID: Sendable, Hashable {
    case integer(Int)
    case string(ExactText)
    /// A valid id. Requests with this id are answered, but the id does not distinguish them.
    case null

    /// Returns `nil` if `json` is not an id: a fraction, a boolean, an array or an object.
    public init?(_ json: JSON) {
        switch json.kind {
        case .null: self = .null
        case .integer: self = .integer(json.integer ?? 0)
        case .string: self = .string(ExactText(json.string ?? ""))
        case .boolean, .real, .array, .object: return nil
        }
    }

    public var json: JSON {
        switch self {
        case .integer(let value): .integer(value)
        case .string(let value): value.json
        case .null: .null
        }
    }
}
