public import JSONText

/// A JSON-RPC message to send. The members have the order of the specification's examples.
public enum OutgoingMessage: Sendable, Equatable {
    case request(id: RequestID, method: String, params: JSON)
    case notification(method: String, params: JSON)
    case result(id: RequestID, JSON)
    case error(id: RequestID, RPCError)

    public var json: JSON {
        switch self {
        case .request(let id, let method, let params):
            ["jsonrpc": "2.0", "id": id.json, "method": .string(method), "params": params]
        case .notification(let method, let params):
            ["jsonrpc": "2.0", "method": .string(method), "params": params]
        case .result(let id, let result):
            ["jsonrpc": "2.0", "result": result, "id": id.json]
        case .error(let id, let error):
            ["jsonrpc": "2.0", "error": error.json, "id": id.json]
        }
    }
}
