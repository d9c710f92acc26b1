public import JSONText

/// The parameters of `$/cancelRequest`: which request is meant.
public struct CancelRequestParams: Sendable, Equatable {
    public var id: RequestID

    public init(id: RequestID) { self.id = id }

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        let id = try members.required("id", members["id"])
        guard let id = RequestID(id) else { throw members.wrong("id", "a string or an integer") }
        self.id = id
    }

    public var json: JSON { ["id": id.json] }
}

/// The parameters of a method that only names a fetch.
public struct FetchReference: Sendable, Equatable {
    public var fetchID: String

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        fetchID = try members.required("fetchId", members.string("fetchId"))
    }
}

/// `session/clear`: everything, or what is remembered for one origin, or since a time.
public struct SessionClearParams: Sendable, Equatable {
    /// As in a URL, without a path.
    public var origin: String?
    /// Since 1970; what is older stays.
    public var since: Duration?

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["origin", "since"])
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
}

/// `broker/lock` and `broker/unlock`.
public struct LockParams: Sendable, Equatable {
    /// What is wanted to unlock; `nil` where nothing is.
    public var passphrase: Secret?

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["passphrase"])
        passphrase = try members.secret("passphrase", maxBytes: Limits.credentialBytes)
        if passphrase?.isEmpty == true { throw members.wrong("passphrase", "a string that is not empty") }
    }

    public init(passphrase: Secret?) { self.passphrase = passphrase }

    /// May hold a secret: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        ["passphrase": passphrase.flatMap { $0.withUnsafeBytes { JSON.string(secret: $0) } }]
    }
}
