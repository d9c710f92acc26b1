import JSONText
import WatchwordClient
import WatchwordProtocol

/// Asks the person at the terminal for what a server wants to know.
struct TerminalQuestion {
    let interrupt: Int32
    /// How long what is typed is to be kept.
    let keep: Keep

    /// `nil` when there is nothing to answer any more: the user has interrupted, or the broker has withdrawn the question.
    func ask(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let params = challenge.params
        terminal.show(introduction(params))
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
            let persistence = keep.granted(by: challenge.params).persistence
            return .credential(
                .login(LoginCredential(user: user, password: password, persistence: persistence)))
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
    private func introduction(_ params: JSON) -> String {
        var lines = ["", "\(SpaceText.site(params)) asks for a log-in."]
        if let realm = SpaceText.realm(params) { lines.append("  The server says: \(realm)") }
        lines.append("  Scheme: \(SpaceText.scheme(params) ?? "unknown"). \(Self.safety(params))")
        let failures = params["previousFailureCount"]?.integer ?? 0
        if let problem = params["error"]?["message"]?.string {
            lines.append("  \(problem.shortened)")
        } else if failures > 0 {
            lines.append("  The server has refused the last answer (\(failures) failed so far).")
        }
        if failures == 0, let note = keep.granted(by: params).note { lines.append("  \(note)") }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func safety(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        if space?["protocol"]?.string == "https" { return "The connection is encrypted." }
        return space?["receivesCredentialSecurely"]?.boolean == true
            ? "The connection is not encrypted; the password itself is not sent."
            : "NOT SECURE: the password can be read by everybody on the way."
    }
}
