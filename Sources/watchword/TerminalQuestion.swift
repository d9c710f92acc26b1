import JSONText
import WatchwordClient
import WatchwordProtocol

/// Asks the person at the terminal for what a server wants to know.
struct TerminalQuestion {
    let interrupt: Int32

    /// `nil` when there is nothing to answer any more: the user has interrupted, or the broker has withdrawn the question.
    func ask(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let params = challenge.params
        terminal.show(Self.introduction(params))
        let proposed = params["proposedCredential"]?["user"]?.string
        let prompt = "User\(proposed.map { " [\($0.shortened)]" } ?? ""): "
        switch readLine(prompt, at: terminal, challenge, echo: true) {
        case .text(let text) where !text.isEmpty || proposed != nil:
            let user = text.isEmpty ? proposed ?? "" : text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            return askPassword(for: user, challenge, at: terminal)
        case .text, .end:
            terminal.show("Going on without logging in.\n")
            return .proceed
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func askPassword(
        for user: String, _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) -> ChallengeAnswer? {
        switch readLine("Password for \(user.shortened): ", at: terminal, challenge, echo: false) {
        case .text(let password):
            return .credential(.password(PasswordCredential(user: user, password: password)))
        case .end:
            terminal.show("Going on without logging in.\n")
            return .proceed
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func readLine(
        _ prompt: String, at terminal: borrowing Terminal, _ challenge: IncomingChallenge, echo: Bool
    ) -> Terminal.Line {
        let line = terminal.readLine(
            prompt, echo: echo, interrupt: interrupt, broker: challenge.descriptor,
            isStillOpen: { challenge.isStillOpen })
        switch line {
        case .withdrawn:
            terminal.show("\nThe question was withdrawn: it was open for too long, or the fetch has ended.\n")
        case .interrupted: terminal.show("\n")
        case .end: if !echo { terminal.show("\n") }
        case .text: break
        }
        return line
    }

    /// Who asks, for what, how safely, and how often it went wrong. What the server says is marked as its words.
    static func introduction(_ params: JSON) -> String {
        var lines = ["", "\(site(params)) asks for a log-in."]
        if let realm = params["protectionSpace"]?["realm"]?.string {
            lines.append("  The server says: \(realm.shortened)")
        }
        lines.append("  Scheme: \(scheme(params)). \(safety(params))")
        let failures = params["previousFailureCount"]?.integer ?? 0
        if let problem = params["error"]?["message"]?.string {
            lines.append("  \(problem.shortened)")
        } else if failures > 0 {
            lines.append("  The server has refused the last answer (\(failures) failed so far).")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Scheme, host and port, as in a URL.
    static func site(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        let (scheme, host) = (space?["protocol"]?.string ?? "", space?["host"]?.string ?? "")
        let port = space?["port"]?.integer ?? 0
        let isUsual = (scheme, port) == ("http", 80) || (scheme, port) == ("https", 443)
        return "\(scheme)://\(host)\(isUsual ? "" : ":\(port)")".shortened
    }

    static func scheme(_ params: JSON) -> String {
        switch params["protectionSpace"]?["authenticationMethod"]?.string {
        case "httpBasic": "Basic"
        case "httpDigest": "Digest"
        case let other: (other ?? "unknown").shortened
        }
    }

    private static func safety(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        if space?["protocol"]?.string == "https" { return "The connection is encrypted." }
        return space?["receivesCredentialSecurely"]?.boolean == true
            ? "The connection is not encrypted; the password itself is not sent."
            : "NOT SECURE: the password can be read by everybody on the way."
    }
}
