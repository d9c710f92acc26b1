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

/// The kinds of errors. The raw value is `error.data.kind`, a stable string; each kind has one error code.
///
/// JSON-RPC reserves the codes -32768 to -32000 (section 5.1); -32800 is `RequestCancelled` of the Language Server Protocol.
/// Watchword's own codes start at 1001.
public enum ErrorKind: String, Sendable, CaseIterable {
    case parseError, invalidRequest, methodNotFound, invalidParams, internalError, cancelled
    case badURL, invalidHeader, invalidMethod, notSupported, tooLarge, busy, shuttingDown, unknownFetch
    case challengeCancelled, challengeTimedOut, tooManyAttempts, invalidAnswer, denied, locked, unknownCredential
    case keyringUnavailable, serverNotAuthentic, noAgent
    case nameNotResolved, cannotConnect, timedOut, connectionLost, malformedResponse, tlsFailed, serverNotTrusted
    case clientCertificateRejected, proxyFailed
    case tooManyRedirects, insecureRedirect, badRedirect
    case bodyNotReplayable, bodyIncomplete
    case protocolViolation
    /// A login in a browser, or a request for a token, has failed.
    case loginFailed

    /// Whether a retry can succeed.
    public enum Retry: String, Sendable {
        /// The same call will fail again in the same way.
        case never
        /// The same call may succeed later.
        case later
        /// The call may succeed with another credential, URL or setting.
        case differently
    }

    public var code: Int { entry.code }
    public var retry: Retry { entry.retry }

    /// The fixed message of a code that JSON-RPC defines; `nil` for Watchword's own codes, whose message is specific to each
    /// error.
    public var standardMessage: String? { entry.standardMessage }

    private var entry: (code: Int, retry: Retry, standardMessage: String?) {
        switch self {
        case .parseError: (-32700, .differently, "Parse error")
        case .invalidRequest: (-32600, .differently, "Invalid Request")
        case .methodNotFound: (-32601, .never, "Method not found")
        case .invalidParams: (-32602, .differently, "Invalid params")
        case .internalError: (-32603, .later, "Internal error")
        case .cancelled: (-32800, .later, "Request cancelled")
        case .badURL: (1001, .differently, nil)
        case .invalidHeader: (1002, .differently, nil)
        case .invalidMethod: (1003, .differently, nil)
        case .notSupported: (1004, .never, nil)
        case .tooLarge: (1005, .differently, nil)
        case .busy: (1006, .later, nil)
        case .shuttingDown: (1007, .later, nil)
        case .unknownFetch: (1008, .never, nil)
        case .challengeCancelled: (1010, .differently, nil)
        case .challengeTimedOut: (1011, .later, nil)
        case .tooManyAttempts: (1012, .differently, nil)
        case .invalidAnswer: (1013, .differently, nil)
        case .denied: (1014, .never, nil)
        case .locked: (1015, .differently, nil)
        case .unknownCredential: (1016, .never, nil)
        case .keyringUnavailable: (1017, .later, nil)
        case .serverNotAuthentic: (1019, .never, nil)
        case .nameNotResolved: (1020, .later, nil)
        case .cannotConnect: (1021, .later, nil)
        case .timedOut: (1022, .later, nil)
        case .connectionLost: (1023, .later, nil)
        case .malformedResponse: (1024, .never, nil)
        case .tlsFailed: (1025, .never, nil)
        case .serverNotTrusted: (1026, .never, nil)
        case .clientCertificateRejected: (1027, .differently, nil)
        case .proxyFailed: (1028, .later, nil)
        case .tooManyRedirects: (1030, .differently, nil)
        case .insecureRedirect: (1031, .never, nil)
        case .badRedirect: (1032, .never, nil)
        case .protocolViolation: (1033, .differently, nil)
        case .bodyNotReplayable: (1034, .later, nil)
        case .bodyIncomplete: (1035, .later, nil)
        case .noAgent: (1036, .later, nil)
        case .loginFailed: (1037, .differently, nil)
        }
    }
}

/// The cause of an error in more detail than its kind: `error.data.cause`, for clients that distinguish more cases, such as
/// those with curl's exit codes. Absent if the kind is specific enough.
public enum FailureCause: String, Sendable, CaseIterable {
    /// The server closed the connection without sending anything.
    case emptyReply
    /// The connection ended before the body was complete.
    case bodyCutShort
    /// The request could not be written to the connection.
    case sendFailed
    /// A chunk of the body has an invalid size (RFC 9112 section 7.1), or receiving failed for another reason.
    case receiveFailed
    /// An HTTP/2 connection or stream error occurred.
    case http2
    /// The response does not begin with a status line (RFC 9112 section 4).
    case notHTTP
    /// The header section is invalid.
    case malformedHeader
    /// The body cannot be decoded, or its content coding is not supported.
    case badContentCoding
    /// A redirect leads to a scheme that `redirects.schemes` excludes.
    case schemeNotAllowed
}
