public import JSONText

/// Invalid parameters: the path of the member and the expected value. Becomes error -32602.
public struct InvalidParams: Error, Sendable, Equatable {
    public var detail: String

    public init(_ detail: String) { self.detail = detail }
}

/// Reads the members of a JSON object. Errors name the member by its path.
public struct Members {
    private let json: JSON?
    private let path: String

    /// An absent `json` counts as an object without members. Throws if `json` is not an object.
    public init(_ json: JSON?, at path: String = "params") throws(InvalidParams) {
        if let json, json.kind != .object {
            throw InvalidParams(
                path == "params"
                    ? "pass params by name, in an object" : "\(path) must be an object, not \(json.kind.words)")
        }
        self.json = json
        self.path = path
    }

    /// Like `init(_:at:)`, but also throws for unknown members. For methods that delete or change something: ignoring a member
    /// that should restrict such a call would make it delete or change more than intended.
    public init(_ json: JSON?, only known: [String], at path: String = "params") throws(InvalidParams) {
        try self.init(json, at: path)
        try refuseMembers(otherThan: known)
    }

    /// Returns the member `name`; `null` counts as absent.
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
        guard let value else { throw InvalidParams("\(path).\(name) is missing") }
        return value
    }

    /// Throws if there is a member other than `known`. A misspelled member must not weaken the decision in an answer, or make a
    /// method delete more than intended.
    public func refuseMembers(otherThan known: [String]) throws(InvalidParams) {
        for (name, _) in json?.members ?? [] where !known.contains(name) {
            let takes = known.isEmpty ? "none" : known.joined(separator: ", ")
            throw InvalidParams("\(path) has the unknown member \"\(name.shortened)\"; it takes \(takes)")
        }
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
