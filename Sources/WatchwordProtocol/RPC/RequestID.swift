public import JSONText

/// What ties a reply to its request (JSON-RPC 2.0 section 4). It goes back with the type that it came with: `1` and `"1"`
/// are two ids.
public enum RequestID: Sendable, Hashable {
    case integer(Int)
    case string(String)
    /// Allowed, and answered, but of no use to tell two requests apart.
    case null

    /// `nil` for what is no id: a fraction, a boolean, an array, an object.
    public init?(_ json: JSON) {
        switch json.kind {
        case .null: self = .null
        case .integer: self = .integer(json.integer ?? 0)
        case .string: self = .string(json.string ?? "")
        case .boolean, .real, .array, .object: return nil
        }
    }

    public var json: JSON {
        switch self {
        case .integer(let value): .integer(value)
        case .string(let value): .string(value)
        case .null: .null
        }
    }
}
