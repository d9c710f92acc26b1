public import JSONText

/// `fetch/run`: performs a fetch and returns its result in one reply.
public struct FetchRun: CallableMethod, Equatable {
    public static let name = "fetch/run"
    public static let access = MethodAccess.everyClient

    public var params: FetchRunParams

    public init(_ params: FetchRunParams) { self.params = params }

    public init(_ members: Members) throws(InvalidParams) {
        params = try FetchRunParams(members)
        let given = try members.integer("maxInlineBodyBytes", in: 0...Limits.inlineBodyBytes)
        params.maxInlineBodyBytes = given ?? params.maxInlineBodyBytes
    }

    public var json: JSON { params.json.adding(["maxInlineBodyBytes": .integer(params.maxInlineBodyBytes)]) }

    public static func json(_ result: FetchRunResult) -> JSON { result.json }
}

/// `fetch/start`: starts a stepwise fetch. The reply is sent at once; the body is read while it is received.
public struct FetchStart: CallableMethod, Equatable {
    public static let name = "fetch/start"
    public static let access = MethodAccess.everyClient

    public var params: FetchRunParams

    public init(_ params: FetchRunParams) { self.params = params }

    public init(_ members: Members) throws(InvalidParams) { params = try FetchRunParams(members) }

    public var json: JSON { params.json }

    public static func json(_ result: (fetchID: String, attachToken: String)) -> JSON {
        ["fetchId": .string(result.fetchID), "attachToken": .string(result.attachToken)]
    }
}

/// `fetch/read`: returns the next part of a body that was returned as a handle.
public struct FetchRead: CallableMethod, Equatable {
    public static let name = "fetch/read"
    public static let access = MethodAccess.everyClient

    public var fetchID: String
    public var maxBytes: Int

    public init(fetchID: String, maxBytes: Int = Limits.readChunkBytes) {
        self.fetchID = fetchID
        self.maxBytes = maxBytes
    }

    public init(_ members: Members) throws(InvalidParams) {
        fetchID = try members.required("fetchId", members.string("fetchId"))
        maxBytes = try members.integer("maxBytes", in: 1...Limits.readChunkBytes) ?? Limits.readChunkBytes
    }

    public var json: JSON { ["fetchId": .string(fetchID), "maxBytes": .integer(maxBytes)] }

    public static func json(_ result: FetchReadResult) -> JSON { result.json }
}

/// The result of `fetch/read`.
public struct FetchReadResult: Sendable, Equatable {
    public var data: [UInt8]
    /// The offset of `data` in the body.
    public var offsetBytes: Int
    public var isAtEnd: Bool

    public init(data: [UInt8], offsetBytes: Int, isAtEnd: Bool) {
        self.data = data
        self.offsetBytes = offsetBytes
        self.isAtEnd = isAtEnd
    }

    /// Returns `nil` if `json` is not such a result.
    public init?(_ json: JSON) {
        guard let data = json["data"].flatMap(BodyValue.bytes), let offset = json["offsetBytes"]?.integer,
            let isAtEnd = json["eof"]?.boolean
        else { return nil }
        self.init(data: data, offsetBytes: offset, isAtEnd: isAtEnd)
    }

    public var json: JSON {
        ["data": BodyValue.json(data), "offsetBytes": .integer(offsetBytes), "eof": .boolean(isAtEnd)]
    }
}

/// `fetch/attach`: uses the connection for the raw body of a fetch that was started with `fetch/start`.
public struct FetchAttach: CallableMethod, Equatable {
    public enum Side: String, Sendable, CaseIterable {
        /// The broker writes the response body, then closes the connection.
        case response
        /// The client writes the request body, then shuts down its sending direction.
        case request
    }

    public static let name = "fetch/attach"
    public static let access = MethodAccess.everyClient

    public var token: String
    public var side: Side

    public init(token: String, side: Side) {
        self.token = token
        self.side = side
    }

    public init(_ members: Members) throws(InvalidParams) {
        token = try members.required("token", members.string("token"))
        side = try members.required("side", members.choice("side", as: Side.self))
    }

    public var json: JSON { ["token": .string(token), "side": .string(side.rawValue)] }
}

/// `fetch/cancel`: cancels a fetch, or discards the rest of its body.
public struct FetchCancel: CallableMethod, Equatable {
    public static let name = "fetch/cancel"
    public static let access = MethodAccess.everyClient

    public var fetchID: String

    public init(fetchID: String) { self.fetchID = fetchID }

    public init(_ members: Members) throws(InvalidParams) {
        fetchID = try members.required("fetchId", members.string("fetchId"))
    }

    public var json: JSON { ["fetchId": .string(fetchID)] }

    public static func json(_ isCancelled: Bool) -> JSON { ["cancelled": .boolean(isCancelled)] }
}

/// `fetch/list`: lists the fetches of the connection.
public struct FetchList: ParameterlessMethod {
    public enum Entry: Sendable {
        /// A running fetch.
        /// - Parameter wait: The parameters of `fetch/waiting`, if the fetch waits.
        case running(String, url: String, method: String, state: String, since: Duration, wait: JSON?)
        /// A fetch whose response was received, but whose body was not read completely.
        case holding(String)
    }

    public static let name = "fetch/list"
    public static let access = MethodAccess.everyClient
    public init() {}
    public static func json(_ fetches: [Entry]) -> JSON { ["fetches": .array(fetches.map(\.json))] }
}

extension FetchList.Entry {
    fileprivate var json: JSON {
        switch self {
        case .running(let fetchID, let url, let method, let state, let since, let wait):
            let entry: JSON = [
                "fetchId": .string(fetchID), "url": .string(url), "method": .string(method), "state": .string(state),
                "runningMs": .integer(since.wholeMilliseconds),
            ]
            return wait.map(entry.adding) ?? entry
        case .holding(let fetchID): return ["fetchId": .string(fetchID), "state": "holding"]
        }
    }
}
