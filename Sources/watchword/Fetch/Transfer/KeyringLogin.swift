import JSONText
import WatchwordClient
import WatchwordProtocol

/// An accepted login of a command with `--keep keyring`, from the prompt or from `-u`.
struct KeyringLogin {
    /// The credentials to search, a pattern of `credential/list`.
    private let space: JSON
    /// `nil` for a token.
    private let user: ExactText?
    /// Whether the session already had the login of `-u`. The broker then does not store it again.
    private let isOfSession: Bool

    /// A login that was typed at the prompt.
    /// - Parameters:
    ///   - accepted: `auth` or `proxyAuth` of the result.
    ///   - prompt: the last challenge of this server or proxy that was shown at the terminal.
    /// - Returns: `nil` if the accepted login is another one.
    init?(_ accepted: JSON?, typedFor prompt: JSON?) {
        guard accepted?["source"]?.string == "client", let space = prompt?["protectionSpace"] else { return nil }
        (self.space, user, isOfSession) = (space, accepted?["user"]?.exactText, false)
    }

    /// The login of `-u`.
    /// - Returns: `nil` if the accepted login is another one.
    init?(_ result: JSON, ofOptionFor params: FetchRunParams) {
        guard params.credential != nil, let accepted = result["auth"], let site = try? Site(url: params.url) else {
            return nil
        }
        let source = accepted["source"]?.string
        isOfSession = source == "session"
        // The option is for the origin of the URL. After a redirect, the session's login may be for another one.
        let last = try? Site(url: result["url"]?.string ?? "").pattern
        guard source == "explicit" || isOfSession && last == site.pattern else { return nil }
        (space, user) = (site.pattern.json, accepted["user"]?.exactText)
    }

    /// Returns why the keyring does not contain this login, as a message; `nil` if it does.
    func problem(_ connection: BrokerConnection) throws(ClientFailure) -> String? {
        guard let reason = try missing(connection) else { return nil }
        let name = user.map { "login of \($0.shortened)" } ?? "token"
        return "the \(name) for \(site) was not stored in the keyring: \(reason)"
    }

    /// Whether both are for the same account of the same server. The session has the login after its first use.
    func isSame(as other: KeyringLogin) -> Bool { space == other.space && user == other.user }

    private var site: String { SpaceText.site(["protectionSpace": space]) }

    private func missing(_ connection: BrokerConnection) throws(ClientFailure) -> String? {
        guard let user else { return "tokens are stored for the session only" }
        do throws(ClientFailure) {
            // The broker makes the calls of the keyring in sequence, and storing a login takes two of them.
            let status = try connection.call(KeyringStatus())
            guard status["state"]?.string == "usable" else { return "it is \(KeyringText.line(status))" }
            let found = try connection.call(CredentialList.name, ["protectionSpace": space])
            let isStored = (found["credentials"]?.elements ?? []).contains { stored in
                let account = Account(user: stored["user"]?.exactText ?? "", domain: stored["domain"]?.exactText)
                return stored["source"]?.string == "keyring" && Account(user: user).admits(account)
            }
            if isStored { return nil }
            return isOfSession
                ? "the session already has it; store it with: watchword credentials store --keep keyring"
                : "logins of this kind are not stored there; see EXIT STATUS in watchword-fetch(1)"
        } catch {
            guard case .refused(let refusal) = error else { throw error }
            return refusal.text
        }
    }
}
