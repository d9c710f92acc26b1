/// The methods of the protocol. What is listed here is dispatched, described in the OpenRPC document, and tested.
public enum MethodName: String, Sendable, CaseIterable {
    case initialize, ping
    case serverStatus = "server/status"
    case discover = "rpc.discover"
    case fetchRun = "fetch/run"
    case fetchRead = "fetch/read"
    case fetchCancel = "fetch/cancel"
    case fetchList = "fetch/list"
    case authRespond = "auth/respond"
    case authListPending = "auth/listPending"
    case sessionClear = "session/clear"
    /// A notification, in both directions.
    case cancelRequest = "$/cancelRequest"
}

/// What the broker sends of its own accord.
public enum BrokerMethodName: String, Sendable, CaseIterable {
    /// The only request; the others are notifications.
    case authChallenge = "auth/challenge"
    case authPending = "auth/pending"
    case authCancelled = "auth/cancelled"
    case fetchHeaders = "fetch/headers"
    case fetchRedirect = "fetch/redirect"
    case serverClosing = "server/closing"
    case cancelRequest = "$/cancelRequest"
}
