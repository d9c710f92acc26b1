public import JSONText

/// One JSON-RPC message as it came in, parsed once. What is wrong with it is a value too.
public enum IncomingMessage: Sendable, Equatable {
    case request(id: RequestID, method: String, params: JSON?)
    case notification(method: String, params: JSON?)
    case result(id: RequestID, JSON)
    case error(id: RequestID, RPCError)
    /// Meant as a reply, and not one: with both of `result` and `error`, with an error that is none, or without
    /// `"jsonrpc":"2.0"`. It gets no answer, which the peer could take for the reply to a request of its own.
    case brokenReply(id: RequestID)
    /// An id and nothing else: a reply without its half where a request of ours has this id, else a request without its.
    case empty(id: RequestID, reason: String)
    /// Gets the error -32600 with `id`, which is `null` where none could be read.
    case invalid(id: RequestID, reason: String)

    /// Reads a message that is not a batch (JSON-RPC 2.0 sections 4 and 5).
    public init(_ json: JSON) {
        guard json.kind == .object else {
            self = .invalid(id: .null, reason: "a message is an object")
            return
        }
        let idMember = json["id"]
        let id = idMember.flatMap(RequestID.init)
        let problem = Self.problem(of: json, idIsInvalid: idMember != nil && id == nil)
        if let problem {
            self = Self.wrong(json, id: id, problem)
        } else if let method = json["method"]?.string {
            let params = json["params"]
            self =
                id.map { .request(id: $0, method: method, params: params) }
                ?? .notification(method: method, params: params)
        } else {
            self = Self.reply(json, id: id ?? .null)
        }
    }

    private static func wrong(_ json: JSON, id: RequestID?, _ problem: String) -> IncomingMessage {
        if json["method"] != nil { return .invalid(id: id ?? .null, reason: problem) }
        if json["result"] != nil || json["error"] != nil { return .brokenReply(id: id ?? .null) }
        return id.map { .empty(id: $0, reason: problem) } ?? .invalid(id: .null, reason: problem)
    }

    private static func problem(of json: JSON, idIsInvalid: Bool) -> String? {
        if idIsInvalid { return "an id is a string, an integer or null" }
        if json["jsonrpc"]?.string != "2.0" { return "the member jsonrpc must be the string \"2.0\"" }
        if let method = json["method"] {
            if method.kind != .string { return "a method is a string" }
            if let params = json["params"], params.kind != .object, params.kind != .array {
                return "params are an object or an array"
            }
        } else if json["result"] == nil && json["error"] == nil {
            return "a message has a method, a result or an error"
        }
        return nil
    }

    private static func reply(_ json: JSON, id: RequestID) -> IncomingMessage {
        switch (json["result"], json["error"].flatMap(RPCError.init)) {
        case (let result?, nil) where json["error"] == nil: .result(id: id, result)
        case (nil, let error?): .error(id: id, error)
        default: .brokenReply(id: id)
        }
    }
}
