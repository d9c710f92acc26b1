import JSONText
import WatchwordProtocol

/// What to say where there was no terminal to ask at, and nobody else had an answer.
enum MissingAnswer {
    static func login(_ challenge: JSON) -> String {
        let isRefusal = (challenge["previousFailureCount"]?.integer ?? 0) > 0
        let what = isRefusal ? "has refused the credential, and asks again" : "asks for a log-in"
        // NTLM has no realm, and Bearer need not have one.
        let realm = SpaceText.realm(challenge).map { ", \"\($0)\"" } ?? ""
        let how = (SpaceText.scheme(challenge) ?? "unknown") + realm
        return "\(SpaceText.site(challenge)) \(what) (\(how)), and there is no terminal to ask at. \(advice(challenge))"
    }

    private static func advice(_ challenge: JSON) -> String {
        let method = challenge["protectionSpace"]?["authenticationMethod"]?.string ?? ""
        switch AuthenticationMethod(rawValue: method) {
        case .bearer: return "Run it once at a terminal, or give --oauth2-bearer token."
        case .httpBasic, .httpDigest, .ntlm:
            let option = SpaceText.isProxy(challenge) ? "-x with -U" : "-u"
            return "Run it once at a terminal, or give \(option) user:password."
        default: return "Only an agent that knows this scheme can answer."
        }
    }

    /// `nil` when no certificate was shown.
    static func trust(_ challenge: JSON) -> String? {
        guard let shown = ShownCertificate(challenge), let pin = Fingerprint.pin(shown.keyHash) else { return nil }
        return "-k accepts it at a terminal only. If this is the right server: --pinnedpubkey \(pin)"
    }
}
