public import JSONText

/// `session/clear`: removes the session credentials: all, those for one origin, or those added since a time.
public struct SessionClear: CallableMethod, Equatable {
    public static let name = "session/clear"

    /// The origin of a server, of an HTTP proxy, or of both, or the URL of a SOCKS proxy.
    public var origin: String?
    /// A time since 1970; older credentials remain.
    public var since: Duration?

    public init(_ members: Members) throws(InvalidParams) {
        origin = try members.string("origin")
        since = try members.moment("since")
    }

    public init(origin: String?, since: Duration? = nil) {
        self.origin = origin
        self.since = since
    }

    public var json: JSON {
        [
            "origin": origin.map { .string($0) },
            "since": since.map { .string(UTCTime.text($0.wholeMilliseconds)) },
        ]
    }

    public static func json(_ removed: Int) -> JSON { ["removed": .integer(removed)] }
}

/// `broker/lock`: clears the session. Until unlocked, stored credentials are neither used nor added.
public struct BrokerLock: PassphraseMethod, Equatable {
    public static let name = "broker/lock"

    public var passphrase: Secret?

    public init(passphrase: Secret?) { self.passphrase = passphrase }
}

/// `broker/unlock`: ends the lock.
public struct BrokerUnlock: PassphraseMethod, Equatable {
    public static let name = "broker/unlock"

    public var passphrase: Secret?

    public init(passphrase: Secret?) { self.passphrase = passphrase }
}

/// A method that locks or unlocks the broker.
public protocol PassphraseMethod: CallableMethod where Result == Bool {
    /// The passphrase of the lock; `nil` for none.
    var passphrase: Secret? { get }
    init(passphrase: Secret?)
}

extension PassphraseMethod {
    public init(_ members: Members) throws(InvalidParams) {
        let passphrase = try members.secret("passphrase", maxBytes: Limits.credentialBytes)
        if passphrase?.isEmpty == true { throw members.wrong("passphrase", "a string that is not empty") }
        self.init(passphrase: passphrase)
    }

    public var json: JSON {
        ["passphrase": passphrase.flatMap { $0.withUnsafeBytes { JSON.string(secret: $0) } }]
    }

    public static func json(_ isLocked: Bool) -> JSON { ["locked": .boolean(isLocked)] }
}
