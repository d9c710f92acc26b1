public import JSONText

/// A method that clients call. A value represents one call with its parameters.
public protocol Method: ClientValue, Sendable {
    static var name: String { get }
    static var access: MethodAccess { get }
    associatedtype Result: Sendable = Void

    /// Returns `result` as JSON.
    static func json(_ result: Result) -> JSON
}

/// The clients that may call a method.
public enum MethodAccess: Sendable {
    /// All clients, including those on the restricted socket and in sandboxes: the method only concerns their own fetches.
    case everyClient
    case unconfinedClients
}

extension Method {
    /// The default: a method for confined clients must declare it explicitly.
    public static var access: MethodAccess { .unconfinedClients }
}

extension Method where Result == Void {
    public static func json(_: Void) -> JSON { [:] }
}

/// A method that Swift clients call with typed parameters.
public protocol CallableMethod: Method {
    /// The parameters. They may contain a secret: serialize them with `JSON.write(_:)`.
    var json: JSON { get }
}

public protocol ParameterlessMethod: CallableMethod {
    init()
}

extension ParameterlessMethod {
    public init(_ members: Members) throws(InvalidParams) { self.init() }

    public var json: JSON { [:] }
}

/// The methods of requests and notifications that the broker sends. The first seven are requests, the others notifications.
public enum BrokerMethodName: String, Sendable, CaseIterable {
    case authChallenge = "auth/challenge"
    case authCanAuthenticate = "auth/canAuthenticate"
    case authUseStorage = "auth/useStorage"
    case fetchNeedBody = "fetch/needBody"
    case fetchApproveRedirect = "fetch/approveRedirect"
    case authConfirm = "auth/confirm"
    case authPrompt = "auth/prompt"
    case authPending = "auth/pending"
    case authCancelled = "auth/cancelled"
    case authResolved = "auth/resolved"
    case credentialChanged = "credential/changed"
    case fetchHeaders = "fetch/headers"
    case fetchProgress = "fetch/progress"
    case fetchCompleted = "fetch/completed"
    case fetchRedirect = "fetch/redirect"
    case fetchRequest = "fetch/request"
    case fetchResponse = "fetch/response"
    case fetchWaiting = "fetch/waiting"
    case serverClosing = "server/closing"
    case event
    case cancelRequest = "$/cancelRequest"
}

/// The parameters of `$/cancelRequest`: the id of the request to cancel.
public struct CancelRequestParams: ClientValue, Sendable, Equatable {
    public var id: RequestID

    public init(id: RequestID) { self.id = id }

    public init(_ members: Members) throws(InvalidParams) {
        let id = try members.required("id", members["id"])
        guard let id = RequestID(id) else { throw members.wrong("id", "a string or an integer") }
        self.id = id
    }

    public var json: JSON { ["id": id.json] }
}
