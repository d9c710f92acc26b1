public import JSONText

/// Parameters of the wrong shape: what, where, and what was expected. Becomes the error -32602.
public struct InvalidParams: Error, Sendable, Equatable {
    public var detail: String

    public init(_ detail: String) { self.detail = detail }
}

/// Reads the members of an object, and says by their path what is wrong with them.
public struct Members {
    private let json: JSON?
    private let path: String

    /// `json` absent reads as an object without members; anything but an object is refused.
    public init(_ json: JSON?, at path: String = "params") throws(InvalidParams) {
        if let json, json.kind != .object {
            throw InvalidParams(
                path == "params"
                    ? "params go by name, in an object" : "\(path) must be an object, not \(json.kind.words)")
        }
        self.json = json
        self.path = path
    }

    /// The same for a method that deletes or changes something: a member that it does not know would have said what is meant.
    public init(_ json: JSON?, only known: [String], at path: String = "params") throws(InvalidParams) {
        try self.init(json, at: path)
        try refuseMembers(otherThan: known)
    }

    /// The member `name`; `null` counts as absent.
    public subscript(name: String) -> JSON? {
        guard let value = json?[name], !value.isNull else { return nil }
        return value
    }

    public func object(_ name: String) throws(InvalidParams) -> Members? {
        guard let value = self[name] else { return nil }
        return try Members(value, at: "\(path).\(name)")
    }

    public func string(_ name: String) throws(InvalidParams) -> String? {
        try read(name, "a string") { $0.string }
    }

    /// A string that identifies something.
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

    /// A string of bytes that must not become a `String`.
    public func secret(_ name: String, maxBytes: Int) throws(InvalidParams) -> Secret? {
        try read(name, "a string of at most \(maxBytes) bytes") { value in
            value.withUTF8 { $0.count <= maxBytes ? Secret(copying: $0) : nil } ?? nil
        }
    }

    /// One of an enumeration's strings.
    public func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, as type: Choice.Type
    ) throws(InvalidParams) -> Choice? where Choice.RawValue == String {
        try read(name, "one of: \(Choice.allCases.map(\.rawValue).joined(separator: ", "))") {
            $0.string.flatMap(Choice.init(rawValue:))
        }
    }

    public func required<Value>(_ name: String, _ value: Value?) throws(InvalidParams) -> Value {
        guard let value else { throw InvalidParams("\(path).\(name) is missing") }
        return value
    }

    /// Refuses members other than `known`: in an answer a typing error must not weaken a decision, and in what is to be deleted
    /// it must not mean more.
    public func refuseMembers(otherThan known: [String]) throws(InvalidParams) {
        for (name, _) in json?.members ?? [] where !known.contains(name) {
            let takes = known.isEmpty ? "none" : known.joined(separator: ", ")
            throw InvalidParams("\(path) has the unknown member \"\(name.shortened)\"; it takes \(takes)")
        }
    }

    /// The error for the member `name` when `expected` was expected.
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
