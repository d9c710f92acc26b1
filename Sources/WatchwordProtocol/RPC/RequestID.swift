public import JSONText

/// What ties a reply to its request (JSON-RPC 2.0 section 4). It goes back with the type that it came with: `1` and `"1"`
/// are two ids.
public enum RequestID: Sendable {
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

extension RequestID: Hashable {
    /// As Swift compares strings, "é" has two spellings that are equal; ids compare byte for byte.
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
