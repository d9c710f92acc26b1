import JSONText
import WatchwordProtocol

/// The output of `-v`, as in curl: `* ` for events, `> ` for requests, `< ` for responses.
enum Verbose {
    static func show(_ method: String, _ params: JSON?) {
        for line in lines(method, params ?? [:]) { StandardError.write(line: line, evenIfSilent: true) }
    }

    static func lines(_ method: String, _ params: JSON) -> [String] {
        switch method {
        case BrokerMethodName.fetchRequest.rawValue: request(params)
        case BrokerMethodName.fetchResponse.rawValue: response(params)
        case BrokerMethodName.fetchRedirect.rawValue:
            [
                "* status \(params["status"]?.integer ?? 0): redirected to \(params["to"]?.string.map(DisplayURL.text) ?? "")"
            ]
        case BrokerMethodName.fetchCompleted.rawValue: result(params)
        case BrokerMethodName.serverClosing.rawValue: ["* the broker is closing"]
        default: []
        }
    }

    private static func request(_ params: JSON) -> [String] {
        let logins = [("server", params["auth"]), ("proxy", params["proxyAuth"])].compactMap { name, login in
            login.flatMap(self.login).map { "* Logging in to the \(name) with \($0)" }
        }
        let target = shown(params["target"]?.string ?? "")
        return logins + ["> \(params["method"]?.string ?? "") \(target) HTTP/1.1"] + fields(params, "> ") + [">"]
    }

    private static func response(_ params: JSON) -> [String] {
        let head = ReportedHead(params)
        return ["< \(shown(head.statusLine))"] + fields(params, "< ") + ["<"]
    }

    private static func fields(_ params: JSON, _ prefix: String) -> [String] {
        ReportedHead(params).headers.map { field in
            let value = isSecret(field.name) ? redacted(field) : field.value  // guard: curl-verbose-secrets
            return prefix + shown("\(field.name): \(isChallenge(field.name) ? withoutTokens(value) : value)")
        }
    }

    /// Describes the accepted logins with their sources, and the challenges for which no one was asked.
    private static func result(_ params: JSON) -> [String] {
        let accepted = [("server", params["auth"]), ("proxy", params["proxyAuth"])].compactMap { name, login in
            login.flatMap(self.login).map { "* The \(name) accepted the login with \($0)" }
        }
        return accepted + UnansweredText.lines(params).map { "* \($0)" }
    }

    private static func login(_ json: JSON) -> String? {
        guard let method = json["authenticationMethod"]?.string else { return nil }
        let user = json["user"]?.string.map { " as \"\(shown($0))\"" } ?? ""
        let source = (json["source"]?.string).map { " (\(StoredSource.words($0) ?? sources[$0] ?? $0))" }
        let name = method == "other" ? "another scheme" : SpaceText.schemes[method] ?? method
        return name + user + (source ?? "")
    }

    /// Returns the complete text, with terminal control characters replaced.
    private static func shown(_ text: String) -> String { text.shortened(to: .max) }

    private static let sources = [
        "explicit": "from the command line", "url": "from the URL", "client": "typed at the terminal",
        "agent": "from the desktop agent",
    ]

    /// Whether the field contains a login, or may contain a token that replaces one.
    static func isSecret(_ name: String) -> Bool {
        let name = name.lowercased()
        return !isChallenge(name)
            && ["auth", "cookie", "token", "secret", "password", "key", "session"].contains { name.contains($0) }
    }

    private static func isChallenge(_ name: String) -> Bool {
        ["www-authenticate", "proxy-authenticate"].contains(name.lowercased())
    }

    /// Returns challenges without the tokens of Negotiate (RFC 4559) and NTLM, the only secret part of a challenge.
    private static func withoutTokens(_ challenges: String) -> String {
        let parts = challenges.split(separator: ",", omittingEmptySubsequences: false).map { part in
            var isToken = false
            return part.split(separator: " ", omittingEmptySubsequences: false).map { word in
                guard !word.isEmpty else { return "" }
                defer { isToken = ["negotiate", "ntlm"].contains(word.lowercased()) }
                return isToken ? "[redacted]" : String(word)
            }.joined(separator: " ")
        }
        return parts.joined(separator: ",")
    }

    private static func redacted(_ field: HeaderField) -> String {
        // The broker has already redacted logins, except for their scheme.
        field.value.hasSuffix("[redacted]") ? field.value : "[redacted]"
    }
}
