public import JSONText

/// What happened to a credential, a certificate or the session: a line of the audit log, and the parameters of `event`.
///
/// What has no member here cannot be told: no secret, no header, and of a URL only its origin. Every text is shortened and
/// made harmless for a terminal when it is written.
public struct AuditEvent: Sendable, Equatable {
    /// What happened.
    public enum Kind: String, Sendable, CaseIterable {
        /// A request with this credential was handed to the network; whether the server took it is not known yet.
        case credentialUsed
        /// The server, or the proxy, said no to it.
        case credentialRefused
        /// A client certificate was shown, or may have been.
        case certificateUsed
        case certificateRefused
        /// Somebody accepted a server's certificate that does not verify, or that the client wanted to see.
        case trustAccepted
        case challengeAsked
        case challengeAnswered
        /// Nobody answers it: `reason` is `deadline`, `disconnected`, `unregistered`, `failed`, `cancelled` where its fetch
        /// has ended, or `stopped` where a person wants to be asked nothing for this program.
        case challengeUnanswered
        /// Somebody was asked whether a program may use what is kept.
        case consentAsked
        /// What was said to that; `deadline` where nobody has.
        case consentAnswered
        case grantRevoked
        /// A person wants to be asked nothing any more for the program that `subject` names.
        case promptsStopped
        /// It may ask again.
        case promptsResumed
        case credentialStored
        case credentialForgotten
        case credentialDefaultChanged
        /// A program was given the secret itself.
        case credentialHandedOut
        case sessionCleared
        case locked
        case unlocked
        /// The broker did not do what a client wanted.
        case denied
        /// Events were not written; only in the file.
        case eventsLost
    }

    /// A program that talks to the broker.
    public struct Client: Sendable, Hashable {
        /// What it calls itself; anybody can say anything.
        public var name: String?
        public var pid: Int
        public var uid: Int
        /// The program file, as the kernel named it when the client connected.
        public var executable: String?

        public init(name: String?, pid: Int, uid: Int, executable: String?) {
            self.name = name
            self.pid = pid
            self.uid = uid
            self.executable = executable
        }
    }

    public var kind: Kind
    /// Milliseconds since 1970.
    public var timeMs: Int
    /// On whose behalf; `nil` for what the broker does by itself.
    public var client: Client?
    public var fetchID: String?
    /// Of the request: scheme, host and port.
    public var origin: String?
    public var space: SpacePattern?
    public var user: ExactText?
    /// Where the credential came from, or where it is kept.
    public var source: CredentialSource?
    /// The answer to a challenge.
    public var action: String?
    /// Who was asked, or has answered: `client`, `agent`; of a consent, `deadline` or `nobody` as well.
    public var by: String?
    /// The program that was asked, where it is not `client`.
    public var agent: Client?
    /// How long what was accepted is kept.
    public var persistence: Persistence?
    /// The program that a consent is about, or that is asked about no more, as `Subject.text` has it.
    public var subject: String?
    /// Why: an `error.kind`, or fixed words of the broker.
    public var reason: String?
    /// How many credentials, or events.
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
            "subject": subject.map { .short($0, AuditEvent.longestName) }, "reason": reason.map { .short($0) },
            "count": count.map { .integer($0) },
        ]
    }

    /// Hosts and program files are told whole, as far as systems let them be: the end of a name is what it belongs to.
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
        ]
    }
}

extension JSON {
    fileprivate static func short(_ text: String, _ limit: Int = 80) -> JSON { .string(text.shortened(to: limit)) }
}
