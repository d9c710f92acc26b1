internal import CJansson

extension JSON {
    public static var null: JSON { JSON(.null) }

    public static func boolean(_ value: Bool) -> JSON { JSON(.boolean(value)) }

    public static func integer(_ value: Int) -> JSON { JSON(.integer(value)) }

    /// Returns `nil` for infinities and NaN, which JSON cannot represent.
    public static func real(_ value: Double) -> JSON? { value.isFinite ? JSON(.real(value)) : nil }

    public static func string(_ value: String) -> JSON { JSON(.string(value)) }

    /// Returns a string in memory that is wiped when it is freed; `nil` if `bytes` are not UTF-8.
    public static func string(secret bytes: UnsafeRawBufferPointer) -> JSON? {
        WipingAllocator.install()
        guard let start = bytes.baseAddress else { return .string("") }
        return json_stringn(start.assumingMemoryBound(to: CChar.self), bytes.count).map {
            JSON(.parsed(Node(owning: $0)))
        }
    }

    /// Returns a value that writes itself. Reading it as a tree costs its text and a parse.
    public static func written(_ value: some JSONWritable & AnyObject) -> JSON { JSON(.written(value)) }

    public static func array(_ elements: [JSON]) -> JSON { JSON(.array(elements)) }

    /// Returns an array of two-element arrays of strings.
    public static func pairs(_ pairs: [(String, String)]) -> JSON { JSON(.pairs(pairs)) }

    /// Returns an object with these members in this order; names must be unique. Members whose value is `nil` are
    /// omitted.
    public static func object(_ members: [(String, JSON?)]) -> JSON { JSON(.object(members)) }

    /// Returns this object with the members of `other` appended. They replace members of the same name. A value that is
    /// not an object is returned unchanged.
    public func adding(_ other: JSON) -> JSON {
        guard var members = storedMembers else { return self }
        for case (let name, let value?) in other.storedMembers ?? [] {
            if let index = members.firstIndex(where: { $0.0.isSame(as: name) }) {
                members[index].1 = value
            } else {
                members.append((name, value))
            }
        }
        return .object(members)
    }
}

extension JSON {
    /// The members of an object, of which those without a value do not count.
    private var storedMembers: [(String, JSON?)]? {
        if case .object(let members) = content { members } else { members?.map { ($0, $1) } }
    }
}

extension String {
    /// Whether the bytes are equal.
    fileprivate func isSame(as other: String) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON?)...) { self = .object(elements) }
}
