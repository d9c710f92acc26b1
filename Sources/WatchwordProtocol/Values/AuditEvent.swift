public import JSONText

/// A record of the audit log, and the parameters of the notification `event`.
///
/// Records never contain secrets or headers, and only the origin of a URL. When a record is serialized, all texts are shortened
/// and made safe for a terminal.
public struct AuditEvent: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        /// A request with this credential was sent; whether the server accepts it is not known yet.
        case credentialUsed
        /// The server or proxy refused the credential.
        case credentialRefused
        /// A client certificate was presented to the server, or may have been.
        case certificateUsed
        case certificateRefused
        /// A respondent accepted a server certificate that does not verify, or that the client asked to decide about.
        case trustAccepted
        case challengeAsked
        case challengeAnswered
        /// A challenge got no answer. `reason` is `deadline`, `disconnected`, `unregistered`, `failed`, `cancelled` (its fetch
        /// has ended), or `stopped` (a person has stopped the questions of this program).
        case challengeUnanswered
        /// An agent was asked whether a program may use a stored credential.
        case consentAsked
        /// The answer to a consent question; `by` is `deadline` if there was none in time.
        case consentAnswered
        /// A prompt of a program (`prompt/ask`) was shown to an agent.
        case promptAsked
        /// The answer to such a prompt: `action` is `answer`, `allow` or `cancel`; without an answer, `reason` is one of those
        /// of `challengeUnanswered`.
        case promptAnswered
        case grantRevoked
        /// A person has stopped the questions of the program `subject`.
        case promptsStopped
        /// The questions of the program `subject` are allowed again.
        case promptsResumed
        case credentialStored
        case credentialForgotten
        case credentialDefaultChanged
        /// The secret itself was released to a program.
        case credentialHandedOut
        case sessionCleared
        case locked
        case unlocked
        /// The broker refused a request of a client.
        case denied
        /// A program sent a request to a front that records each request, or that refused it; `reason` is absent in the
        /// first case. `action` is the HTTP method.
        case frontRequest
        /// Events could not be written. Only in the file, not sent to clients.
        case eventsLost
    }

    /// A client of the broker.
    public struct Client: Sendable, Hashable {
        /// The name that the client gave; not verified.
        public var name: String?
        public var pid: Int
        public var uid: Int
        /// The path of the program file, from the kernel, when the client connected.
        public var executable: String?
        /// The path of the script, if the program file is an interpreter that names one.
        public var script: String?

        public init(name: String?, pid: Int, uid: Int, executable: String?, script: String? = nil) {
            self.name = name
            self.pid = pid
            self.uid = uid
            self.executable = executable
            self.script = script
        }
    }

    public var kind: Kind
    /// Milliseconds since 1970.
    public var timeMs: Int
    /// The client that caused the event; `nil` if the broker acted on its own.
    public var client: Client?
    public var fetchID: String?
    /// The origin of the request: scheme, host and port.
    public var origin: String?
    public var space: SpacePattern?
    public var user: ExactText?
    /// The source of the credential, or the place where it is stored.
    public var source: CredentialSource?
    /// The answer to a challenge.
    public var action: String?
    /// The respondent: `client` or `agent`. For a consent also `deadline` (no answer in time) or `nobody` (no agent answered).
    public var by: String?
    /// The agent that was asked, if the respondent is not `client`.
    public var agent: Client?
    /// The persistence of an accepted certificate.
    public var persistence: Persistence?
    /// The program of a consent or of stopped questions, as in `Subject.text`.
    public var subject: String?
    /// The program whose prompt was shown, as its client names it; not verified.
    public var program: String?
    /// The reason: an `error.kind`, or a fixed text of the broker.
    public var reason: String?
    /// The number of credentials, of grants, or of events that one record stands for.
    public var count: Int?

    public init(_ kind: Kind, timeMs: Int, client: Client? = nil) {
        self.kind = kind
        self.timeMs = timeMs
        self.client = client
    }

    public var json: JSON {
        [
            "time": .string(UTCTime.text(timeMs)), "kind": .string(kind.rawValue), "client": client?.json,
            "fetchId": fetchID.map { .short($0) }, "origin": origin.map { .short($0, AuditEvent.longestName) },
            "protectionSpace": space.map(AuditEvent.json), "user": user.map { .short($0.string) },
            "source": source.map { .string($0.rawValue) }, "action": action.map { .short($0) },
            "by": by.map { .short($0) }, "agent": agent?.json, "persistence": persistence.map { .string($0.rawValue) },
            "subject": subject.map { .short($0, AuditEvent.longestName) }, "program": program.map { .short($0) },
            "reason": reason.map { .short($0) },
            "count": count.map { .integer($0) },
        ]
    }

    /// The length to which hosts and paths are shortened. It leaves real host names complete, because the end of a name shows
    /// its owner.
    fileprivate static let longestName = 300

    private static func json(_ space: SpacePattern) -> JSON {
        var space = space
        space.host = ExactText(space.host.string.shortened(to: longestName))
        space.realm = (space.realm?.shortened).map { ExactText($0) }
        return space.json
    }
}

extension AuditEvent.Client {
    var json: JSON {
        [
            "name": name.map { .short($0) }, "pid": .integer(pid), "uid": .integer(uid),
            "executable": executable.map { .short($0, AuditEvent.longestName) },
            "script": script.map { .short($0, AuditEvent.longestName) },
        ]
    }
}

extension JSON {
    fileprivate static func short(_ text: String, _ limit: Int = 80) -> JSON { .string(text.shortened(to: limit)) }
}

extension AuditEvent {
    /// Returns the names of the groups that share the room of the audit log, for a line of the log: what happened and where the
    /// credential came from, then the program that caused it, then the login or the origin. The first does not depend on what a
    /// program calls itself, so programs of one kind of record cannot displace the records of another kind.
    public static func share(ofLine line: ArraySlice<UInt8>) -> [Int] {
        guard let event = try? JSON.parse(Array(line), limits: JSONLimits(depth: 8, values: 256)), event.kind == .object
        else { return [1] }
        let (client, space) = (event["client"], event["protectionSpace"])
        return [
            name([event["kind"], event["source"]]),
            name([client?["executable"], client?["script"]]),
            name([event["origin"], space?["host"], space?["realm"], event["user"]]),
        ]
    }

    private static func name(_ parts: [JSON?]) -> Int {
        var hasher = Hasher()
        for part in parts { hasher.combine(part?.string) }
        return hasher.finalize()
    }
}
