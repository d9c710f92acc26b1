internal import CJansson

extension JSON {
    public static var null: JSON { made(json_null()) }

    public static func boolean(_ value: Bool) -> JSON { made(value ? json_true() : json_false()) }

    public static func integer(_ value: Int) -> JSON { made(json_integer(json_int_t(value))) }

    /// `nil` for what JSON cannot say: infinities, and what is not a number.
    public static func real(_ value: Double) -> JSON? { value.isFinite ? made(json_real(value)) : nil }

    public static func string(_ value: String) -> JSON { made(text(value)) }

    /// `nil` when `bytes` are not UTF-8. They are copied into memory that is wiped when it is freed, so a secret may pass.
    public static func string(utf8 bytes: UnsafeRawBufferPointer) -> JSON? {
        WipingAllocator.install()
        guard let start = bytes.baseAddress else { return .string("") }
        return json_stringn(start.assumingMemoryBound(to: CChar.self), bytes.count).map { JSON(owning: Node($0)) }
    }

    public static func array(_ elements: [JSON]) -> JSON {
        let result = made(json_array())
        for element in elements { append(element, to: result) }
        return result
    }

    /// A list of lists of two strings.
    public static func pairs(_ pairs: some Sequence<(String, String)>) -> JSON {
        let result = made(json_array())
        for (first, second) in pairs {
            let pair = json_array()
            let isMade =
                json_array_append_new(pair, text(first)) == 0 && json_array_append_new(pair, text(second)) == 0
                && json_array_append_new(result.node.pointer, pair) == 0
            if !isMade { outOfMemory() }
        }
        return result
    }

    /// Members whose value is `nil` are left out.
    public static func object(_ members: KeyValuePairs<String, JSON?>) -> JSON {
        let result = made(json_object())
        for case (let name, let value?) in members { set(name, value, in: result) }
        return result
    }

    /// This object with `members` after its own; those of the same name are replaced. Anything but an object is left as it
    /// is.
    public func adding(_ members: KeyValuePairs<String, JSON?>) -> JSON {
        guard kind == .object else { return self }
        guard let copy = json_copy(node.pointer) else { outOfMemory() }
        let result = JSON(owning: Node(copy))
        for case (let name, let value?) in members { JSON.set(name, value, in: result) }
        return result
    }

    /// This object with the members of `other` after its own.
    public func adding(contentsOf other: JSON) -> JSON {
        guard let copy = json_copy(node.pointer) else { outOfMemory() }
        guard json_object_update(copy, other.node.pointer) == 0 else { outOfMemory() }
        return JSON(owning: Node(copy))
    }

    private static func text(_ value: String) -> UnsafeMutablePointer<json_t>? {
        var value = value
        return value.withUTF8 { bytes in
            guard let start = bytes.baseAddress else { return json_stringn_nocheck("", 0) }
            return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                json_stringn_nocheck($0, bytes.count)
            }
        }
    }

    private static func append(_ element: JSON, to array: JSON) {
        if json_array_append(array.node.pointer, element.node.pointer) != 0 { outOfMemory() }
    }

    private static func set(_ name: String, _ value: JSON, in object: JSON) {
        if json_object_set_nocheck(object.node.pointer, name, value.node.pointer) != 0 { outOfMemory() }
    }

    private static func made(_ node: UnsafeMutablePointer<json_t>?) -> JSON {
        WipingAllocator.install()
        guard let node else { outOfMemory() }
        return JSON(owning: Node(node))
    }
}

/// As everywhere in Swift, small allocations that fail end the program.
private func outOfMemory() -> Never { fatalError("out of memory while building a JSON value") }

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }

    public init(dictionaryLiteral elements: (String, JSON)...) {
        let result = JSON.made(json_object())
        for (name, value) in elements { JSON.set(name, value, in: result) }
        self = result
    }
}
