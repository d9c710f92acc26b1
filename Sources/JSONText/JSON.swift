internal import CJansson

/// One JSON value (RFC 8259): parsed, or built to be sent. Immutable.
///
/// A value read out of another shares its tree, so taking a message apart copies nothing. A string stays where it is until
/// it is asked for, which is how a password gets from a message into a wiped block without ever being a `String`.
public struct JSON: Sendable {
    let tree: Tree
    let node: Node

    init(owning node: Node) {
        self.tree = Tree(node)
        self.node = node
    }

    private init(_ node: Node, in tree: Tree) {
        self.tree = tree
        self.node = node
    }

    public enum Kind: Sendable {
        case null, boolean, integer, real, string, array, object
    }

    public var kind: Kind {
        switch json_type(UInt32(watchword_json_type(node.pointer))) {
        case JSON_TRUE, JSON_FALSE: .boolean
        case JSON_INTEGER: .integer
        case JSON_REAL: .real
        case JSON_STRING: .string
        case JSON_ARRAY: .array
        case JSON_OBJECT: .object
        default: .null
        }
    }

    public var isNull: Bool { kind == .null }

    /// `nil` for anything but `true` and `false`.
    public var boolean: Bool? {
        kind == .boolean ? json_type(UInt32(watchword_json_type(node.pointer))) == JSON_TRUE : nil
    }

    /// `nil` for anything but a number without fraction and exponent. Such numbers are within 64 bits: others do not parse.
    public var integer: Int? { kind == .integer ? Int(json_integer_value(node.pointer)) : nil }

    /// Any number.
    public var number: Double? {
        switch kind {
        case .integer, .real: json_number_value(node.pointer)
        default: nil
        }
    }

    public var string: String? { withUTF8 { String(decoding: $0, as: UTF8.self) } }

    /// Lends the bytes of a string for the length of the call; `nil` for anything but a string.
    public func withUTF8<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        guard let start = json_string_value(node.pointer) else { return nil }
        return try body(UnsafeRawBufferPointer(start: start, count: json_string_length(node.pointer)))
    }

    /// The elements of an array; `nil` for anything else.
    public var elements: [JSON]? {
        guard kind == .array else { return nil }
        return (0..<json_array_size(node.pointer)).compactMap { index in
            json_array_get(node.pointer, index).map { JSON(Node($0), in: tree) }
        }
    }

    /// The member called `name` of an object; `nil` where there is none, and for anything but an object.
    public subscript(name: String) -> JSON? {
        json_object_get(node.pointer, name).map { JSON(Node($0), in: tree) }
    }

    /// The members of an object in their order; `nil` for anything else.
    public var members: [(name: String, value: JSON)]? {
        guard kind == .object else { return nil }
        var result: [(name: String, value: JSON)] = []
        var position = json_object_iter(node.pointer)
        while let current = position {
            if let name = json_object_iter_key(current), let value = json_object_iter_value(current) {
                result.append((String(cString: name), JSON(Node(value), in: tree)))
            }
            position = json_object_iter_next(node.pointer, current)
        }
        return result
    }
}

extension JSON: Equatable {
    /// Equal by content; the order of an object's members does not count, and `1` is not `1.0`.
    public static func == (left: JSON, right: JSON) -> Bool {
        json_equal(left.node.pointer, right.node.pointer) == 1
    }
}

extension JSON: CustomStringConvertible, CustomReflectable {
    /// The kind alone: a message may hold a password.
    public var description: String { "JSON(\(kind))" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A jansson value.
///
/// `@unchecked Sendable`: no value is changed after the function that made it has returned it, and jansson counts
/// references atomically.
struct Node: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<json_t>

    init(_ pointer: UnsafeMutablePointer<json_t>) { self.pointer = pointer }
}

/// Holds one reference to the root of a tree.
final class Tree: Sendable {
    private let root: Node

    /// Takes over the caller's reference.
    init(_ root: Node) { self.root = root }

    deinit { watchword_json_release(root.pointer) }
}
