internal import Glibc
public import JSONText
public import WatchwordProtocol

/// Fetches through the broker, for programs that do one thing at a time. Every call blocks.
///
///     let broker = try Watchword()
///     let page = try broker.fetch("https://intranet.example/report") { challenge in .login(user: "bob", password: secret) }
///
/// Not for use from several threads. `BrokerConnection` has the rest of the protocol.
public final class Watchword {
    /// A response, whatever its status.
    public struct Response: Sendable {
        public let status: Int
        /// In the order in which they came; a name may come more than once.
        public let headers: [(name: String, value: String)]
        public let body: [UInt8]
        /// All that the broker said of it.
        public let details: JSON
    }

    /// What a server asks. Its texts are the server's own, and may say anything.
    public struct Challenge: Sendable {
        public let url: String
        public let realm: String?
        /// As in the protocol: `httpBasic`, `serverTrust` and so on.
        public let authenticationMethod: String
        public let previousFailureCount: Int
        /// The stored logins that fit, to be answered with `Answer.stored`.
        public let knownUsers: [KnownUser]
        /// All that the broker said of it.
        public let details: JSON

        init(_ params: JSON) {
            url = params["url"]?.string ?? ""
            realm = params["protectionSpace"]?["realm"]?.string
            authenticationMethod = params["protectionSpace"]?["authenticationMethod"]?.string ?? ""
            previousFailureCount = params["previousFailureCount"]?.integer ?? 0
            knownUsers = (params["knownUsers"]?.elements ?? []).compactMap(KnownUser.init)
            details = params
        }
    }

    private let connection: BrokerConnection
    /// Told how an answer ended, with the parameters of `auth/resolved`, before the fetch returns.
    public var onResolved: (JSON) -> Void = { _ in }

    /// Connects to the broker at `socket`, else at the usual place (`SocketLocation`).
    public init(name: String = "swift", socket: String? = nil) throws(ClientFailure) {
        let variable = { (name: String) in getenv(name).map { String(cString: $0) } }
        connection = try BrokerConnection(SocketLocation(explicit: socket, environment: variable, uid: getuid()))
        connection.onNotification = { [weak self] method, params in
            if method == BrokerMethodName.authResolved.rawValue, let params { self?.onResolved(params) }
        }
        try connection.initialize(name: name, version: WatchwordVersion.current, delivery: .request)
    }

    /// One fetch, with its whole body. `answer` is asked when a server is.
    public func fetch(_ url: String, answer: @escaping (Challenge) -> Answer) throws(ClientFailure) -> Response {
        try fetch(FetchRunParams(url: url), answer: answer)
    }

    /// As above, with all the parameters of `fetch/run`.
    public func fetch(
        _ params: FetchRunParams, answer: @escaping (Challenge) -> Answer
    ) throws(ClientFailure) -> Response {
        let result = try connection.call(.fetchRun, params.json) { answer(Challenge($0.params)).challengeAnswer }
        let pairs = (result["headers"]?.elements ?? []).map { $0.elements ?? [] }
        return Response(
            status: result["status"]?.integer ?? 0,
            headers: pairs.map { (name: $0.first?.string ?? "", value: $0.last?.string ?? "") },
            body: try body(result["body"]), details: result)
    }

    private func body(_ json: JSON?) throws(ClientFailure) -> [UInt8] {
        guard let fetchID = json?["fetchId"]?.string else { return try Self.bytes(json) }
        var whole: [UInt8] = []
        while true {
            let part = try connection.call(.fetchRead, FetchReadParams(fetchID: fetchID).json)
            whole += try Self.bytes(part["data"])
            if part["eof"]?.boolean == true { return whole }
        }
    }

    private static func bytes(_ json: JSON?) throws(ClientFailure) -> [UInt8] {
        guard let bytes = json.flatMap(BodyValue.bytes) else { throw .protocolViolation("a body that cannot be read") }
        return bytes
    }
}

extension Watchword {
    /// What a challenge is answered with.
    public enum Answer: Sendable {
        /// One attempt with it.
        case credential(Credential)
        /// `continue`: no more authentication; the response that asked becomes the result, with its body.
        case proceed
        /// The fetch fails.
        case cancel
        /// As though nobody had been asked here.
        case useDefault
        /// Not this scheme: ask with the next one that was offered.
        case reject

        /// A user and a password, kept for as long as the session unless it says otherwise.
        public static func login(user: String, password: Secret, persistence: Persistence = .forSession) -> Answer {
            .credential(.login(LoginCredential(user: ExactText(user), password: password, persistence: persistence)))
        }

        /// A stored login that the challenge lists: nobody has to type its password.
        public static func stored(_ known: KnownUser) -> Answer { .credential(.stored(known.id)) }

        /// The user in the first line of a file, and the password in the second. `cancel` where there are no two lines.
        public static func login(file path: String) -> Answer {
            guard let text = Secret(contentsOf: path) else { return .cancel }
            return text.withUnsafeBytes { bytes in
                let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                guard lines.count >= 2 else { return .cancel }
                let password = Secret(copying: UnsafeRawBufferPointer(rebasing: lines[1]))
                return .login(user: String(decoding: lines[0], as: UTF8.self), password: password)
            }
        }

        var challengeAnswer: ChallengeAnswer {
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
    /// A user and a password take less.
    private static let room = 16 << 10

    /// A file that is small enough, without a copy of it elsewhere.
    fileprivate init?(contentsOf path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        self.init(capacity: Self.room) { block in
            var count = 0
            while count < block.count {
                let more = read(descriptor, block.baseAddress! + count, block.count - count)
                if more < 0 && errno == EINTR { continue }
                guard more > 0 else { break }
                count += more
            }
            return count
        }
        guard count < Self.room else { return nil }
    }
}
