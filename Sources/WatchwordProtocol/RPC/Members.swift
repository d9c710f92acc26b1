public import JSONText

/// Invalid parameters: the path of the member and the expected value. Becomes error -32602.
public struct InvalidParams: Error, Sendable, Equatable {
    public var detail: String

    public init(_ detail: String) { self.detail = detail }
}

/// A value in a message of a client. A member that it does not read makes the message invalid, at any depth: ignoring a misspelt
/// member would weaken a protection, or delete more than intended.
public protocol ClientValue {
    /// The path of the value in errors.
    static var path: String { get }
    init(_ members: Members) throws(InvalidParams)
}

extension ClientValue {
    public static var path: String { "params" }

    public init(_ json: JSON?, at path: String? = nil) throws(InvalidParams) {
        do throws(InvalidParams) {
            self = try Self.read(Members(json, path ?? Self.path, of: nil, collectsNames: false))
        } catch {
            // Again, with the names for the message.
            self = try Self.read(Members(json, at: path ?? Self.path))
        }
    }

    private static func read(_ members: Members) throws(InvalidParams) -> Self {
        let value = try Self(members)
        try members.refuseUnread()  // guard: unknown-members
        return value
    }
}

/// Reads the members of a JSON object, and knows which it has read. Errors name the member by its path.
public final class Members {
    private let json: JSON?
    private let name: String
    private unowned let parent: Members?
    /// The names of the members that were not read yet.
    private var unread: [String]
    /// Whether `known` is collected, which costs more than reading most messages.
    private let collectsNames: Bool
    /// The names of the members that were looked for, present or not.
    private var known: [String] = []
    private var children: [Members] = []

    /// An absent `json` counts as an object without members. Throws if `json` is not an object.
    public convenience init(_ json: JSON?, at path: String = "params") throws(InvalidParams) {
        try self.init(json, path, of: nil, collectsNames: true)
    }

    fileprivate init(_ json: JSON?, _ name: String, of parent: Members?, collectsNames: Bool) throws(InvalidParams) {
        (self.json, self.name, self.parent) = (json, name, parent)
        (unread, self.collectsNames) = (json?.members?.map(\.name) ?? [], collectsNames)
        guard let json, json.kind != .object else { return }
        throw InvalidParams(
            path == "params"
                ? "pass params by name, in an object" : "\(path) must be an object, not \(json.kind.words)")
    }

    private var path: String { parent.map { "\($0.path).\(name)" } ?? name }

    /// Returns the member `name`; `null` counts as absent.
    public subscript(name: String) -> JSON? {
        if collectsNames { known.append(name) }
        guard let value = json?[name] else { return nil }
        // Compared byte by byte, as the member was found: canonically equivalent names are different members.
        unread.removeAll { $0.utf8.elementsEqual(name.utf8) }
        return value.isNull ? nil : value
    }

    public func object(_ name: String) throws(InvalidParams) -> Members? {
        guard let value = self[name] else { return nil }
        let child = try Members(value, name, of: self, collectsNames: collectsNames)
        children.append(child)
        return child
    }

    public func value<Value: ClientValue>(_ name: String, as type: Value.Type) throws(InvalidParams) -> Value? {
        guard let members = try object(name) else { return nil }
        return try Value(members)
    }

    public func string(_ name: String) throws(InvalidParams) -> String? {
        try read(name, "a string") { $0.string }
    }

    /// Returns a string that identifies something and is compared byte by byte.
    public func exactText(_ name: String) throws(InvalidParams) -> ExactText? { try string(name).map { ExactText($0) } }

    public func boolean(_ name: String) throws(InvalidParams) -> Bool? {
        try read(name, "true or false") { $0.boolean }
    }

    public func integer(_ name: String, in range: ClosedRange<Int>) throws(InvalidParams) -> Int? {
        try read(name, "a whole number from \(range.lowerBound) to \(range.upperBound)") { value in
            value.integer.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    public func elements(_ name: String) throws(InvalidParams) -> [JSON]? {
        try read(name, "a list") { $0.elements }
    }

    /// Returns a string whose bytes must not become a `String`.
    public func secret(_ name: String, maxBytes: Int) throws(InvalidParams) -> Secret? {
        try read(name, "a string of at most \(maxBytes) bytes") { value in
            value.withUTF8 { $0.count <= maxBytes ? Secret(copying: $0) : nil } ?? nil
        }
    }

    /// Returns a string that is one of the raw values of `Choice`.
    public func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, as type: Choice.Type
    ) throws(InvalidParams) -> Choice? where Choice.RawValue == String {
        try read(name, "one of: \(Choice.allCases.map(\.rawValue).joined(separator: ", "))") {
            $0.string.flatMap(Choice.init(rawValue:))
        }
    }

    public func required<Value>(_ name: String, _ value: Value?) throws(InvalidParams) -> Value {
        if let value { return value }
        for misspelt in unread where SimilarName.nearest(to: misspelt, among: [name]) != nil { throw unknown(misspelt) }
        throw InvalidParams("\(path).\(name) is missing")
    }

    /// Throws if this object, or an object in it that was opened with `object`, has a member that was not read.
    public func refuseUnread() throws(InvalidParams) {
        if let name = unread.first { throw unknown(name) }
        for child in children { try child.refuseUnread() }
    }

    private func unknown(_ name: String) -> InvalidParams {
        var names: [String] = []
        for name in known where !names.contains(name) { names.append(name) }
        let advice =
            SimilarName.nearest(to: name, among: names).map { "did you mean \"\($0)\"?" }
            ?? "it takes \(names.isEmpty ? "none" : names.joined(separator: ", "))"
        return InvalidParams("\(path) has the unknown member \"\(name.shortened)\"; \(advice)")
    }

    /// Returns the error for a member `name` that is not `expected`.
    public func wrong(_ name: String, _ expected: String) -> InvalidParams {
        InvalidParams("\(path).\(name) must be \(expected)")
    }

    private func read<Value>(
        _ name: String, _ expected: @autoclosure () -> String, _ convert: (JSON) -> Value?
    ) throws(InvalidParams) -> Value? {
        guard let value = self[name] else { return nil }
        guard let converted = convert(value) else { throw wrong(name, expected()) }
        return converted
    }
}

extension JSON.Kind {
    var words: String {
        switch self {
        case .null: "null"
        case .boolean: "a boolean"
        case .integer, .real: "a number"
        case .string: "a string"
        case .array: "a list"
        case .object: "an object"
        }
    }
}
