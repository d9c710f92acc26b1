internal import JSONText

/// The reasons why no respondent was asked, although a server or a proxy requires a login (SEMANTICS rule 28).
public struct Unanswered: Sendable, Equatable {
    /// The reason why an offered scheme did not cause a question.
    public enum Reason: String, Sendable, CaseIterable {
        /// The challenge names no realm, so its protection space is unknown.
        case noRealm
        /// The challenge is Digest without `qop` (RFC 2069).
        case noQop
        /// The challenge is malformed, lacks a parameter, or has an unknown value.
        case malformed
        /// The host is not in the configuration, which lists the hosts for Kerberos tickets and NTLM.
        case notListed
        /// The fetch, the configuration, or the proxy in use excludes the scheme.
        case excluded
        /// A token is not sent over an unencrypted connection.
        case needsTLS
        /// There is no Kerberos ticket, it was not usable, or the fetch must not use it.
        case noTicket
        /// The response contains no challenge, although the broker has a login, and sent it.
        case noChallenge
        /// No respondent is available; see `NoRespondent`.
        case noRespondent
    }

    /// The reason why no respondent is available. The last respondent in the chain determines it.
    public enum NoRespondent: String, Sendable, CaseIterable {
        /// The fetch has `interaction: "none"`.
        case interaction
        /// The client answered `auth/canAuthenticate` with `false`, or is not asked about TLS connections.
        case canAuthenticate
        /// The client unsubscribed after the fetch began, and no agent is registered.
        case unsubscribed
        /// The client does not answer challenges, and no agent for the method is registered or every agent answered `default`.
        case noAgent
        /// A person stopped the questions of this program.
        case stopped
        /// A person did not consent to the use of a stored credential.
        case consentDenied
    }

    public struct Scheme: Sendable, Equatable {
        /// The name as in the offer; for `noChallenge`, the scheme of the login.
        public var name: String
        public var reason: Reason

        public init(_ name: String, _ reason: Reason) {
            (self.name, self.reason) = (name, reason)
        }
    }

    /// The schemes in the order of the offers.
    public var schemes: [Scheme]
    /// The cause, if a scheme has the reason `noRespondent`.
    public var cause: NoRespondent?
    /// Whether the proxy requires the login.
    public var isOfProxy: Bool

    public init(schemes: [Scheme], cause: NoRespondent?, isOfProxy: Bool) {
        (self.schemes, self.cause, self.isOfProxy) = (schemes, cause, isOfProxy)
    }

    /// Writes the members in the result of a fetch.
    func write(to writer: inout JSONWriter) {
        writer.name(isOfProxy ? "proxyUnanswered" : "unanswered")
        writer.beginArray()
        for scheme in schemes {
            writer.separate()
            writer.beginObject()
            writer.member("scheme", scheme.name.shortened)
            writer.member("reason", scheme.reason.rawValue)
            writer.endObject()
        }
        writer.endArray()
        if let cause { writer.member(isOfProxy ? "proxyNoRespondent" : "noRespondent", cause.rawValue) }
    }
}
