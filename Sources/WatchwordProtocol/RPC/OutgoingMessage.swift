public import JSONText

/// A JSON-RPC message to send. The members have the order of the specification's examples.
public enum OutgoingMessage: Sendable, Equatable {
    case request(id: RequestID, method: String, params: JSON)
    case notification(method: String, params: JSON)
    case result(id: RequestID, JSON)
    case error(id: RequestID, RPCError)
}

extension OutgoingMessage: JSONWritable {
    public func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("jsonrpc", "2.0" as String)
        switch self {
        case .request(let id, let method, let params):
            writer.member("id", id.json)
            writer.member("method", method)
            writer.member("params", params)
        case .notification(let method, let params):
            writer.member("method", method)
            writer.member("params", params)
        case .result(let id, let result):
            writer.member("result", result)
            writer.member("id", id.json)
        case .error(let id, let error):
            writer.member("error", error.json)
            writer.member("id", id.json)
        }
        writer.endObject()
    }
}
