internal import Glibc
public import JSONText
public import WatchwordProtocol

/// A client of the broker for programs that do one thing at a time. Every call blocks.
///
///     let broker = try Watchword()
///     let page = try broker.fetch("https://intranet.example/report") { challenge in .login(user: "bob", password: secret) }
///
/// This class is not thread-safe. `AsyncWatchword` of the module WatchwordAsync makes several fetches at a time, and
/// `BrokerConnection` supports the whole protocol.
public final class Watchword {
    /// A response of any status.
    public struct Response: Sendable {
        public let status: Int
        /// The header fields in the order of the response; a name may occur more than once.
        public let headers: [(name: String, value: String)]
        public let body: [UInt8]
        /// The result of `fetch/run`.
        public let details: JSON

        package init(_ result: JSON, body: [UInt8]) {
            status = result["status"]?.integer ?? 0
            headers = (result["headers"]?.elements ?? []).map { field in
                (name: field.elements?.first?.string ?? "", value: field.elements?.last?.string ?? "")
            }
            self.body = body
            details = result
        }
    }

    /// A challenge. Its texts come from the server and must not be trusted.
    public struct Challenge: Sendable {
        public let url: String
        public let realm: String?
        /// The method as in the protocol: `httpBasic`, `serverTrust` and so on.
        public let authenticationMethod: String
        public let previousFailureCount: Int
        /// The stored logins that match, for `Answer.stored`.
        public let knownUsers: [KnownUser]
        /// The login in a browser that also provides the token; the broker withdraws the challenge when it is complete.
        public let login: TokenLogin?
        /// The parameters of `auth/challenge`.
        public let details: JSON

        package init(_ params: JSON) {
            url = params["url"]?.string ?? ""
            realm = params["protectionSpace"]?["realm"]?.string
            authenticationMethod = params["protectionSpace"]?["authenticationMethod"]?.string ?? ""
            previousFailureCount = params["previousFailureCount"]?.integer ?? 0
            knownUsers = (params["knownUsers"]?.elements ?? []).compactMap(KnownUser.init)
            login = params["login"].flatMap(TokenLogin.init)
            details = params
        }
    }

    private let connection: BrokerConnection
    /// Called with the parameters of `auth/resolved`, which report the result of an answer, before the fetch returns.
    public var onResolved: (JSON) -> Void = { _ in }

    /// Connects to the broker at `socket`; `nil` for the default path (`SocketLocation`).
    public init(name: String = "swift", socket: String? = nil) throws(ClientFailure) {
        connection = try BrokerConnection(SocketLocation(ofThisProcess: socket))
        connection.onNotification = { [weak self] method, params in
            if method == BrokerMethodName.authResolved.rawValue, let params { self?.onResolved(params) }
        }
        try connection.initialize(name: name, version: WatchwordVersion.current, delivery: .request)
    }

    /// Fetches `url` and reads the whole body. `answer` answers the challenges.
    public func fetch(_ url: String, answer: @escaping (Challenge) -> Answer) throws(ClientFailure) -> Response {
        try fetch(FetchRunParams(url: url), answer: answer)
    }

    /// Fetches with any parameters of `fetch/run`.
    public func fetch(
        _ params: FetchRunParams, answer: @escaping (Challenge) -> Answer
    ) throws(ClientFailure) -> Response {
        let result = try connection.call(FetchRun(params)) { answer(Challenge($0.params)).challengeAnswer }
        return Response(result, body: try body(result["body"]))
    }

    private func body(_ json: JSON?) throws(ClientFailure) -> [UInt8] {
        let unreadable = ClientFailure.protocolViolation("malformed body")
        guard let fetchID = json?["fetchId"]?.string else {
            guard let bytes = json.flatMap(BodyValue.bytes) else { throw unreadable }
            return bytes
        }
        var whole: [UInt8] = []
        while true {
            guard let part = FetchReadResult(try connection.call(FetchRead(fetchID: fetchID))) else { throw unreadable }
            whole += part.data
            if part.isAtEnd { return whole }
        }
    }
}

extension Watchword {
    /// The answer to a challenge.
    public enum Answer: Sendable {
        /// Makes one attempt with the credential.
        case credential(Credential)
        /// `continue`: continues without logging in; the response with the challenge becomes the result.
        case proceed
        /// Makes the fetch fail.
        case cancel
        /// Leaves the challenge to the next respondent, as if this client had not been asked.
        case useDefault
        /// Rejects the scheme; the broker asks with the next offered scheme.
        case reject

        /// A user and a password, remembered for the session by default.
        public static func login(user: String, password: Secret, persistence: Persistence = .forSession) -> Answer {
            .credential(.login(LoginCredential(user: ExactText(user), password: password, persistence: persistence)))
        }

        /// A stored login that the challenge lists; its password need not be entered.
        public static func stored(_ known: KnownUser) -> Answer { .credential(.stored(known.id)) }

        /// A user from the first line of a file and a password from the second; `cancel` if the file cannot be read or has
        /// fewer lines.
        public static func login(file path: String) -> Answer {
            guard let text = Secret(contentsOf: path) else { return .cancel }
            return text.withUnsafeBytes { bytes in
                let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                guard lines.count >= 2 else { return .cancel }
                let password = Secret(copying: UnsafeRawBufferPointer(rebasing: lines[1]))
                return .login(user: String(decoding: lines[0], as: UTF8.self), password: password)
            }
        }

        package var challengeAnswer: ChallengeAnswer {
            switch self {
            case .credential(let credential): .credential(credential)
            case .proceed: .proceed
            case .cancel: .cancel
            case .useDefault: .useDefault
            case .reject: .reject
            }
        }
    }
}

extension Secret {
    /// The size limit for a file with a user and a password, in bytes.
    private static let room = 16 << 10

    /// Reads a file into memory that is wiped; `nil` if the file cannot be read or is too large.
    fileprivate init?(contentsOf path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var error: Int32 = 0
        self.init(reading: descriptor, capacity: Self.room, error: &error)
        guard error == 0, count < Self.room else { return nil }
    }
}

extension SocketLocation {
    /// The socket `explicit`; `nil` for that of the environment of this process.
    package init(ofThisProcess explicit: String?) {
        self.init(explicit: explicit, environment: { name in getenv(name).map { String(cString: $0) } }, uid: getuid())
    }
}
