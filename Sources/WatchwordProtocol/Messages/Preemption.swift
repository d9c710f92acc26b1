internal import JSONText

/// What may be sent before a challenge: `auth.preemptive` of a fetch (semantics rule 16).
public enum Preemption: Sendable, Equatable {
    /// `false`
    case never
    /// `true`: what the session has, where a server has accepted it.
    case session
    /// `"always"`: the request's own password, by Basic, or its own token with the first request too, over TLS or to this
    /// machine.
    case always

    /// `nil` where there is no such member.
    init?(_ auth: Members) throws(InvalidParams) {
        switch auth["preemptive"] {
        case nil: return nil
        case .some(let json) where json.string == "always": self = .always
        case .some(let json):
            guard let isAllowed = json.boolean else { throw auth.wrong("preemptive", #"true, false or "always""#) }
            self = isAllowed ? .session : .never
        }
    }

    var json: JSON { self == .always ? .string("always") : .boolean(self == .session) }
}
