import JSONText
import WatchwordProtocol

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
