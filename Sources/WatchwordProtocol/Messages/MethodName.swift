/// The methods of the protocol. What is listed here is dispatched, described in the OpenRPC document, and tested.
public enum MethodName: String, Sendable, CaseIterable {
    case initialize, ping
    case serverStatus = "server/status"
    case discover = "rpc.discover"
    case fetchRun = "fetch/run"
    case fetchStart = "fetch/start"
    case fetchRead = "fetch/read"
    case fetchAttach = "fetch/attach"
    case fetchCancel = "fetch/cancel"
    case fetchList = "fetch/list"
    case authSubscribe = "auth/subscribe"
    case authUnsubscribe = "auth/unsubscribe"
    case authRespond = "auth/respond"
    case authListPending = "auth/listPending"
    case agentRegister = "agent/register"
    case agentUnregister = "agent/unregister"
    case credentialList = "credential/list"
    case credentialStore = "credential/store"
    case credentialForget = "credential/forget"
    case credentialSetDefault = "credential/setDefault"
    case credentialGet = "credential/get"
    case sessionClear = "session/clear"
    case keyringStatus = "keyring/status"
    case keyringUnlock = "keyring/unlock"
    case brokerLock = "broker/lock"
    case brokerUnlock = "broker/unlock"
    case eventsSubscribe = "events/subscribe"
    case grantList = "grant/list"
    case grantRevoke = "grant/revoke"
    case promptList = "prompt/list"
    case promptResume = "prompt/resume"
    /// A notification, in both directions.
    case cancelRequest = "$/cancelRequest"
}

/// What the broker sends of its own accord.
public enum BrokerMethodName: String, Sendable, CaseIterable {
    /// The first five are requests; the others are notifications.
    case authChallenge = "auth/challenge"
    case authCanAuthenticate = "auth/canAuthenticate"
    case authUseStorage = "auth/useStorage"
    case fetchNeedBody = "fetch/needBody"
    case authConfirm = "auth/confirm"
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
