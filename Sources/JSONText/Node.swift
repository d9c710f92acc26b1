internal import CJansson

/// A value in a jansson tree. The tree is freed when no node refers to it any more.
///
/// `@unchecked Sendable`: a tree is immutable once it is created.
struct Node: @unchecked Sendable {
    private final class Tree {
        let root: UnsafeMutablePointer<json_t>

        init(_ root: UnsafeMutablePointer<json_t>) { self.root = root }

        deinit { watchword_json_release(root) }
    }

    private let tree: Tree
    private let pointer: UnsafeMutablePointer<json_t>

    /// Takes ownership of the caller's reference to the root of a tree.
    init(owning root: UnsafeMutablePointer<json_t>) {
        tree = Tree(root)
        pointer = root
    }

    /// - Parameter number: finite.
    init(_ number: Double) {
        guard let real = json_real(number) else { preconditionFailure("no memory for a number") }
        self.init(owning: real)
    }

    private init(_ pointer: UnsafeMutablePointer<json_t>, in tree: Tree) {
        self.tree = tree
        self.pointer = pointer
    }

    private var type: json_type { json_type(UInt32(watchword_json_type(pointer))) }

    var kind: JSON.Kind {
        switch type {
        case JSON_TRUE, JSON_FALSE: .boolean
        case JSON_INTEGER: .integer
        case JSON_REAL: .real
        case JSON_STRING: .string
        case JSON_ARRAY: .array
        case JSON_OBJECT: .object
        default: .null
        }
    }

    var boolean: Bool? { kind == .boolean ? type == JSON_TRUE : nil }

    var integer: Int? { kind == .integer ? Int(json_integer_value(pointer)) : nil }

    var number: Double? { kind == .integer || kind == .real ? json_number_value(pointer) : nil }

    /// The bytes of a string, valid as long as the node exists.
    var text: UnsafeRawBufferPointer? {
        json_string_value(pointer).map { UnsafeRawBufferPointer(start: $0, count: json_string_length(pointer)) }
    }

    var elements: [Node]? {
        guard kind == .array else { return nil }
        return (0..<json_array_size(pointer)).compactMap { index in
            json_array_get(pointer, index).map { Node($0, in: tree) }
        }
    }

    subscript(name: String) -> Node? {
        // The function with a length parameter is used, because Swift would copy the name to make a C string.
        var name = name
        let member = name.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { watchword_json_member(pointer, $0.baseAddress, $0.count) }
        }
        return member.map { Node($0, in: tree) }
    }

    var members: [(name: String, value: Node)]? {
        guard kind == .object else { return nil }
        var result: [(name: String, value: Node)] = []
        var position = json_object_iter(pointer)
        while let current = position {
            if let name = json_object_iter_key(current), let value = json_object_iter_value(current) {
                result.append((String(cString: name), Node(value, in: tree)))
            }
            position = json_object_iter_next(pointer, current)
        }
        return result
    }

    /// The precision of written numbers with a fraction: with 15 digits, `41.2` remains `41.2`.
    private static let significantDigits = 15

    private static let flags = Int(JSON_COMPACT | JSON_ENCODE_ANY) | (significantDigits << 11)

    /// Writes the value as compact text if all of it fits. Returns its size in bytes, whether or not it fits.
    func write(_ destination: UnsafeMutableRawBufferPointer) -> Int {
        let start = destination.baseAddress?.assumingMemoryBound(to: CChar.self)
        return json_dumpb(pointer, start, destination.count, Self.flags)
    }
}
