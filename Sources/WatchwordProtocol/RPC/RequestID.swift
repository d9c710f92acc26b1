public import JSONText

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
