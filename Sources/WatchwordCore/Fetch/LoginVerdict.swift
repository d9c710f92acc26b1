public import WatchwordProtocol

/// What a server, or a proxy, made of a login that a fetch sent, for whoever supplied it. Holds no secret.
public struct LoginVerdict: Sendable, Equatable {
    public var fetch: FetchID
    public var space: ProtectionSpace
    public var isAccepted: Bool
    /// `nil` where the credential shows none.
    public var user: ExactText?
}

extension FetchMachine {
    func judge(_ attempt: Attempt, isAccepted: Bool, _ context: inout FetchContext) {
        judge(attempt.space, attempt.credential.shownUser, isAccepted: isAccepted, &context)
    }

    func judge(
        _ space: ProtectionSpace, _ user: ExactText?, isAccepted: Bool, _ context: inout FetchContext
    ) {
        context.outbox.verdicts.append(LoginVerdict(fetch: id, space: space, isAccepted: isAccepted, user: user))
    }
}
