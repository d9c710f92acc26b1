public import JSONText

/// A JSON-RPC error object (section 5.1).
public struct RPCError: Error, Sendable, Equatable {
    public var code: Int
    public var message: String
    public var data: JSON?

    public init(code: Int, message: String, data: JSON? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    /// Creates an error of `kind`. `text` says what happened, to what, and what to do about it; it must not hold a secret.
    ///
    /// For codes that JSON-RPC defines, `message` is the specification's text, and `text` becomes `data.detail`.
    public init(_ kind: ErrorKind, _ text: String, cause: FailureCause? = nil, fetchID: String? = nil) {
        self.code = kind.code
        self.message = kind.standardMessage ?? text
        self.data = [
            "kind": .string(kind.rawValue),
            "detail": kind.standardMessage == nil ? nil : .string(text),
            "retry": .string(kind.retry.rawValue),
            "cause": cause.map { .string($0.rawValue) },
            "fetchId": fetchID.map { .string($0) },
        ]
    }

    /// The kind; `nil` if the error has none, or one that this version does not know.
    public var kind: ErrorKind? { data?["kind"]?.string.flatMap(ErrorKind.init(rawValue:)) }

    public var cause: FailureCause? { data?["cause"]?.string.flatMap(FailureCause.init(rawValue:)) }

    /// The text for a person.
    public var text: String { data?["detail"]?.string ?? message }

    /// Returns `nil` if `json` is not an error object.
    public init?(_ json: JSON) {
        guard let code = json["code"]?.integer, let message = json["message"]?.string else { return nil }
        self.init(code: code, message: message, data: json["data"])
    }

    public var json: JSON {
        ["code": .integer(code), "message": .string(message), "data": data]
    }
}
