public import JSONText

/// The id that connects a reply with its request (JSON-RPC 2.0 section 4). The reply preserves its JSON type: `1` and `"1"` are
/// different ids.
public enum RequestID: Sendable {
    case integer(Int)
    case string(String)
    /// A valid id. Requests with this id are answered, but the id does not distinguish them.
    case null

    /// Returns `nil` if `json` is not an id: a fraction, a boolean, an array or an object.
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

extension RequestID: Hashable {
    /// Compares strings byte by byte. Swift's `==` treats the two encodings of "é" as equal.
    public static func == (left: RequestID, right: RequestID) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left == right
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.null, .null): true
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .integer(let value): hasher.combine(value)
        case .string(let value): hasher.combine(value)
        case .null: break
        }
    }
}
