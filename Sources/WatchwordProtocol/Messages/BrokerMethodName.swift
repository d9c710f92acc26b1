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
