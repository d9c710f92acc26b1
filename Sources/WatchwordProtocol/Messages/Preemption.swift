internal import JSONText

/// The credentials that may be sent before a challenge: `auth.preemptive` of a fetch (SEMANTICS rule 16).
public enum Preemption: Sendable, Equatable {
    /// `false`: none.
    case never
    /// `true`: session credentials, where the server has accepted them before.
    case session
    /// `"always"`: also the fetch's own password (by Basic) or token with the first request, over TLS or to the local machine
    /// only.
    case always

    /// Returns `nil` if the member is absent.
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
