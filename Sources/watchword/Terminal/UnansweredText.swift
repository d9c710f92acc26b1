import JSONText
import WatchwordProtocol

/// Describes for `-v` why no respondent was asked for a login.
enum UnansweredText {
    /// - Parameter result: The result of `fetch/run`, or the parameters of `fetch/completed`.
    static func lines(_ result: JSON?) -> [String] {
        lines("server", result?["unanswered"], result?["noRespondent"])
            + lines("proxy", result?["proxyUnanswered"], result?["proxyNoRespondent"])
    }

    private static func lines(_ place: String, _ schemes: JSON?, _ cause: JSON?) -> [String] {
        (schemes?.elements ?? []).map { entry in
            let scheme = (entry["scheme"]?.string ?? "").shortened
            let reason = entry["reason"]?.string ?? ""
            let words = Unanswered.Reason(rawValue: reason).map { Self.words($0, cause?.string) } ?? reason.shortened
            let name = scheme.isEmpty ? "a scheme without a name" : scheme
            return "no login to the \(place) with \(name): \(words)"
        }
    }

    private static func words(_ reason: Unanswered.Reason, _ cause: String?) -> String {
        switch reason {
        case .noRealm: "the challenge names no realm"
        case .noQop: "the challenge names no qop (RFC 2069)"
        case .malformed: "the challenge is malformed or has an unknown value"
        case .notListed: "the host is not listed in the configuration (schemes.negotiate, schemes.ntlm)"
        case .excluded: "the fetch, the configuration or the proxy excludes it"
        case .needsTLS: "a token is sent over https only"
        case .noTicket: "no usable Kerberos ticket is available"
        case .noChallenge:
            "the response contains no challenge, so nobody was asked; the stored login is not sent there unasked"
        case .noRespondent: cause.map(words(noRespondent:)) ?? "no respondent is available"
        }
    }

    private static func words(noRespondent cause: String) -> String {
        switch Unanswered.NoRespondent(rawValue: cause) {
        case .interaction: "the fetch does not allow prompts (interaction none)"
        case .canAuthenticate: "the client does not answer this challenge"
        case .unsubscribed: "the client has stopped answering challenges"
        case .noAgent: "no agent answered"
        case .stopped: "the questions of this program are stopped (see watchword prompts list)"
        case .consentDenied: "the use of the stored login was not permitted (see watchword grants list)"
        case nil: cause.shortened
        }
    }
}
