import Glibc
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

/// Error messages for a challenge that was not answered, without a terminal.
enum MissingAnswer {
    static func login(_ challenge: JSON) -> String {
        let isRefusal = (challenge["previousFailureCount"]?.integer ?? 0) > 0
        let what = isRefusal ? "refused the credential" : "requires a login"
        // NTLM has no realm, and for Bearer it is optional.
        let realm = SpaceText.realm(challenge).map { ", \"\($0)\"" } ?? ""
        let how = (SpaceText.scheme(challenge) ?? "unknown") + realm
        return "\(SpaceText.site(challenge)) \(what) (\(how)); no terminal available; \(advice(challenge))"
    }

    private static func advice(_ challenge: JSON) -> String {
        let method = challenge["protectionSpace"]?["authenticationMethod"]?.string ?? ""
        switch AuthenticationMethod(rawValue: method) {
        case .bearer: return "run the command once at a terminal, or add --oauth2-bearer token"
        case .httpBasic, .httpDigest, .ntlm:
            let option = SpaceText.isProxy(challenge) ? "-x with -U" : "-u"
            return "run the command once at a terminal, or add \(option) user:password"
        default: return "only an agent that supports this scheme can log in"
        }
    }

    /// Returns `nil` if no certificate was shown.
    static func trust(_ challenge: JSON) -> String? {
        guard let shown = ShownCertificate(challenge), let pin = Fingerprint.pin(shown.keyHash) else { return nil }
        return "-k accepts the certificate only at a terminal; if this is the right server, add --pinnedpubkey \(pin)"
    }
}

/// The notice while a fetch waits for another fetch. A wait for a prompt is always reported; a wait for an in-flight login is
/// short, and reported only with `-v`.
enum WaitNotice {
    /// Whether standard error is a terminal.
    static var hasReader: Bool { isatty(STDERR_FILENO) == 1 }

    /// - Parameter params: The parameters of `fetch/waiting`.
    static func text(_ params: JSON, isVerbose: Bool) -> String? {
        let realm = SpaceText.realm(params).map { " (\($0))" } ?? ""
        let place = SpaceText.site(params) + realm
        switch params["for"]?.string {
        case "question": return "waiting for the answer to another program's login prompt for \(place)"
        case "trial" where isVerbose: return "waiting for another fetch to log in to \(place)"
        default: return nil
        }
    }
}
