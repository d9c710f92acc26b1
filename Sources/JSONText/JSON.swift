/// One JSON value (RFC 8259): parsed, or built to be sent. Immutable.
///
/// A value read out of a parsed one shares its tree, so taking a message apart copies nothing. A string stays where it is until
/// it is asked for, which is how a password gets from a message into a wiped block without ever being a `String`.
public struct JSON: Sendable {
    enum Content: Sendable {
        case parsed(Node)
        case null
        case boolean(Bool)
        case integer(Int)
        case real(Double)
        case string(String)
        /// A string as its bytes, which are UTF-8.
        case utf8([UInt8])
        case array([JSON])
        case pairs([(String, String)])
        /// Members without a value are left out.
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
        case .null: .null
        case .boolean: .boolean
        case .integer: .integer
        case .real: .real
        case .string, .utf8: .string
        case .array, .pairs: .array
        case .object: .object
        }
    }

    public var isNull: Bool { kind == .null }

    /// `nil` for anything but `true` and `false`.
    public var boolean: Bool? {
        switch content {
        case .parsed(let node): node.boolean
        case .boolean(let value): value
        default: nil
        }
    }

    /// `nil` for anything but a number without fraction and exponent. Such numbers are within 64 bits: others do not parse.
    public var integer: Int? {
        switch content {
        case .parsed(let node): node.integer
        case .integer(let value): value
        default: nil
        }
    }

    /// Any number.
    public var number: Double? {
        switch content {
        case .parsed(let node): node.number
        case .integer(let value): Double(value)
        case .real(let value): value
        default: nil
        }
    }

    public var string: String? {
        if case .string(let text) = content { text } else { withUTF8 { String(decoding: $0, as: UTF8.self) } }
    }

    /// Lends the bytes of a string for the length of the call; `nil` for anything but a string.
    public func withUTF8<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        switch content {
        case .parsed(let node):
            return try node.text.map { text in try withExtendedLifetime(node) { try body(text) } }
        case .string(var text):
            return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
        case .utf8(let bytes):
            return try bytes.withUnsafeBytes(body)
        default:
            return nil
        }
    }

    /// The elements of an array; `nil` for anything else.
    public var elements: [JSON]? {
        switch content {
        case .parsed(let node): node.elements?.map { JSON(.parsed($0)) }
        case .array(let elements): elements
        case .pairs(let pairs): pairs.map { [.string($0), .string($1)] }
        default: nil
        }
    }

    /// The member called `name` of an object; `nil` where there is none, and for anything but an object.
    public subscript(name: String) -> JSON? {
        switch content {
        case .parsed(let node): node[name].map { JSON(.parsed($0)) }
        case .object(let members): members.first { $0.0.utf8.elementsEqual(name.utf8) }?.1
        default: nil
        }
    }

    /// The members of an object in their order; `nil` for anything else.
    public var members: [(name: String, value: JSON)]? {
        switch content {
        case .parsed(let node): node.members?.map { ($0, JSON(.parsed($1))) }
        case .object(let members): members.compactMap { name, value in value.map { (name, $0) } }
        default: nil
        }
    }
}

extension JSON: Equatable {
    /// Equal by content; the order of an object's members does not count, and `1` is not `1.0`.
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
    /// The kind alone: a message may hold a password.
    public var description: String { "JSON(\(kind))" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
