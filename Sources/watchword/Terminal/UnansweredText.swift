import JSONText
import WatchwordProtocol

/// Why nobody was asked to log in, in words: for `-v`.
enum UnansweredText {
    /// - Parameter result: of `fetch/run`, or the parameters of `fetch/completed`.
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
            return "nobody was asked to log in to the \(place) by \(name): \(words)"
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
        case .noTicket: "there is no usable Kerberos ticket"
        case .noRespondent: cause.map(words(noRespondent:)) ?? "nobody can be asked"
        }
    }

    private static func words(noRespondent cause: String) -> String {
        switch Unanswered.NoRespondent(rawValue: cause) {
        case .interaction: "the fetch asks nobody (interaction none)"
        case .canAuthenticate: "the client cannot be asked about this"
        case .unsubscribed: "the client takes no questions any more"
        case .noAgent: "no agent answers it"
        case .stopped: "the questions of this program are stopped (watchword prompts list)"
        case nil: cause.shortened
        }
    }
}
