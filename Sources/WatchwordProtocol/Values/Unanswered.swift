internal import JSONText

/// Why nobody was asked to log in, although a server or a proxy wants it: semantics rule 28.
public struct Unanswered: Sendable, Equatable {
    /// Why a scheme that was offered is not asked about.
    public enum Reason: String, Sendable, CaseIterable {
        /// It names no realm, so that there is no protection space.
        case noRealm
        /// Digest as RFC 2069 has it.
        case noQop
        /// The challenge breaks the grammar, or lacks or has something that is not known here.
        case malformed
        /// Kerberos tickets and NTLM are for the hosts that the configuration lists.
        case notListed
        /// The fetch, the configuration, or the proxy on the way rules it out.
        case excluded
        /// A token is not sent where others can read it.
        case needsTLS
        /// There is no Kerberos ticket, or it was of no use, or the fetch must not use it.
        case noTicket
        /// It could be asked about, and nobody is there to be asked; see `NoRespondent`.
        case noRespondent
    }

    /// Why nobody is there to be asked. The last in the chain of respondents counts.
    public enum NoRespondent: String, Sendable, CaseIterable {
        /// The fetch says `interaction: "none"`.
        case interaction
        /// The client has said no to `auth/canAuthenticate`, or is not asked about connections.
        case canAuthenticate
        /// The client has unsubscribed since the fetch began, and there is no agent.
        case unsubscribed
        /// The client does not answer, and no agent that takes the method is registered, or none has answered but `default`.
        case noAgent
        /// A person has stopped the questions of this program.
        case stopped
    }

    public struct Scheme: Sendable, Equatable {
        /// As it was offered.
        public var name: String
        public var reason: Reason

        public init(_ name: String, _ reason: Reason) {
            (self.name, self.reason) = (name, reason)
        }
    }

    /// In the order in which they were offered.
    public var schemes: [Scheme]
    /// Set where a scheme has the reason `noRespondent`.
    public var cause: NoRespondent?
    /// By a proxy.
    public var isOfProxy: Bool

    public init(schemes: [Scheme], cause: NoRespondent?, isOfProxy: Bool) {
        (self.schemes, self.cause, self.isOfProxy) = (schemes, cause, isOfProxy)
    }

    /// The members of a result.
    var members: JSON {
        let list = JSON.array(
            schemes.map { ["scheme": .string($0.name.shortened), "reason": .string($0.reason.rawValue)] })
        let cause = cause.map { JSON.string($0.rawValue) }
        return isOfProxy
            ? ["proxyUnanswered": list, "proxyNoRespondent": cause] : ["unanswered": list, "noRespondent": cause]
    }
}
