/// A JSON value (RFC 8259), parsed or built. Immutable.
///
/// Members and elements of a parsed value share its tree and are not copied. A string becomes a `String`
/// only if `string` is read, so a password can be copied from `withUTF8` to memory that is wiped.
public struct JSON: Sendable {
    enum Content: Sendable {
        case parsed(Node)
        case written(any JSONWritable & AnyObject)
        case null
        case boolean(Bool)
        case integer(Int)
        case real(Double)
        case string(String)
        case array([JSON])
        case pairs([(String, String)])
        /// An object; members whose value is `nil` are omitted.
        case object([(String, JSON?)])
    }

    let content: Content

    init(_ content: Content) { self.content = content }

    public enum Kind: Sendable {
        case null, boolean, integer, real, string, array, object
    }

    public var kind: Kind {
        switch content {
        case .parsed(let node): node.kind
        case .written: parsed.kind
        case .null: .null
        case .boolean: .boolean
        case .integer: .integer
        case .real: .real
        case .string: .string
        case .array, .pairs: .array
        case .object: .object
        }
    }

    public var isNull: Bool { kind == .null }

    /// The tree of a value that writes itself.
    private var parsed: JSON {
        do throws(JSONFailure) {
            return try JSON.parse(serialized(), limits: JSONLimits(depth: .max, values: .max))
        } catch { preconditionFailure("a written value is no JSON: \(error)") }
    }

    /// The value of a Boolean; otherwise `nil`.
    public var boolean: Bool? {
        switch content {
        case .parsed(let node): node.boolean
        case .boolean(let value): value
        case .written: parsed.boolean
        default: nil
        }
    }

    /// The value of a number without fraction and exponent; otherwise `nil`. The parser rejects integers
    /// that do not fit in 64 bits.
    public var integer: Int? {
        switch content {
        case .parsed(let node): node.integer
        case .integer(let value): value
        case .written: parsed.integer
        default: nil
        }
    }

    /// The value of any number; otherwise `nil`.
    public var number: Double? {
        switch content {
        case .parsed(let node): node.number
        case .integer(let value): Double(value)
        case .real(let value): value
        case .written: parsed.number
        default: nil
        }
    }

    public var string: String? {
        if case .string(let text) = content { text } else { withUTF8 { String(decoding: $0, as: UTF8.self) } }
    }

    /// Calls `body` with the UTF-8 bytes of a string, which are valid only during the call. Returns `nil` for any other
    /// kind of value.
    public func withUTF8<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        switch content {
        case .parsed(let node):
            return try node.text.map { text in try withExtendedLifetime(node) { try body(text) } }
        case .written:
            return try parsed.withUTF8(body)
        case .string(var text):
            return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
        default:
            return nil
        }
    }

    /// The elements of an array; `nil` for any other kind of value.
    public var elements: [JSON]? {
        switch content {
        case .parsed(let node): node.elements?.map { JSON(.parsed($0)) }
        case .written: parsed.elements
        case .array(let elements): elements
        case .pairs(let pairs): pairs.map { [.string($0), .string($1)] }
        default: nil
        }
    }

    /// The member `name` of an object; `nil` if the value has no such member or is not an object.
    public subscript(name: String) -> JSON? {
        switch content {
        case .parsed(let node): node[name].map { JSON(.parsed($0)) }
        case .written: parsed[name]
        case .object(let members): members.first { $0.0.utf8.elementsEqual(name.utf8) }?.1
        default: nil
        }
    }

    /// The members of an object, in order; `nil` for any other kind of value.
    public var members: [(name: String, value: JSON)]? {
        switch content {
        case .parsed(let node): node.members?.map { ($0, JSON(.parsed($1))) }
        case .written: parsed.members
        case .object(let members): members.compactMap { name, value in value.map { (name, $0) } }
        default: nil
        }
    }
}

extension JSON: Equatable {
    /// Compares by content. The order of an object's members is ignored; `1` and `1.0` differ.
    public static func == (left: JSON, right: JSON) -> Bool {
        guard left.kind == right.kind else { return false }
        switch left.kind {
        case .null: return true
        case .boolean: return left.boolean == right.boolean
        case .integer: return left.integer == right.integer
        case .real: return left.number == right.number
        case .string: return left.withUTF8 { left in right.withUTF8 { left.elementsEqual($0) } } == true
        case .array: return left.elements == right.elements
        case .object:
            let members = left.members ?? []
            return members.count == right.members?.count && members.allSatisfy { right[$0.name] == $0.value }
        }
    }
}

extension JSON: CustomStringConvertible, CustomReflectable {
    /// The kind only, because a value may contain a password.
    public var description: String { "JSON(\(kind))" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
