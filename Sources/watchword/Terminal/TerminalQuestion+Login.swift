import JSONText
import WatchwordClient
import WatchwordProtocol

/// User and password, and tokens.
extension TerminalQuestion {
    func askLogin(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let params = challenge.params
        terminal.show(introduction(params))
        let proposed = params["proposedCredential"]?["user"]?.exactText
        let form = SpaceText.scheme(params) == "NTLM" ? " (DOMAIN\\user)" : ""
        let prompt = "User\(form)\(proposed.map { " [\($0.shortened)]" } ?? ""): "
        switch readLine(prompt, at: terminal, challenge, echo: true) {
        case .text(let text) where !text.isEmpty || proposed != nil:
            let typed = ExactText(text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
            let user = text.isEmpty ? proposed ?? "" : typed
            return Self.storedAnswer(params, for: user) ?? askPassword(for: user, challenge, at: terminal)
        case .text, .end:
            return goOnWithout(terminal)
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func askPassword(
        for user: ExactText, _ challenge: IncomingChallenge, at terminal: borrowing Terminal
    ) -> ChallengeAnswer? {
        switch readLine("Password for \(user.shortened): ", at: terminal, challenge, echo: false) {
        case .text(let password):
            let persistence = keep.granted(by: challenge.params).persistence
            return .credential(
                .login(LoginCredential(user: user, password: password, persistence: persistence)))
        case .end:
            return goOnWithout(terminal)
        case .interrupted, .withdrawn:
            return nil
        }
    }

    func askToken(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let params = challenge.params
        terminal.show(introduction(params))
        // Nothing that could be typed would do.
        if params["error"]?["kind"]?.string == Challenge.AnswerProblem.connectionNotSecure.rawValue {
            return goOnWithout(terminal)
        }
        switch readLine("Token: ", at: terminal, challenge, echo: false) {
        case .text(let token) where !token.isEmpty:
            let persistence = keep.granted(by: params).persistence
            return .credential(.login(LoginCredential(form: .token, secret: token, persistence: persistence)))
        case .text, .end:
            return goOnWithout(terminal)
        case .interrupted, .withdrawn:
            return nil
        }
    }

    private func goOnWithout(_ terminal: borrowing Terminal) -> ChallengeAnswer {
        terminal.show("Going on without logging in.\n")
        return .proceed
    }

    /// Who asks, for what, how safely, and how often it went wrong. What the server says is marked as its words.
    private func introduction(_ params: JSON) -> String {
        var lines = ["", "\(SpaceText.site(params)) asks for a log-in."]
        if let note = SpaceText.longHostNote(params) { lines.append(note) }
        if let realm = SpaceText.realm(params) {
            lines.append("  The \(SpaceText.isProxy(params) ? "proxy" : "server") says: \(realm)")
        }
        lines.append("  Scheme: \(SpaceText.scheme(params) ?? "unknown"). \(Self.safety(params))")
        if let note = SpaceText.weaknessNote(params) {
            lines.append("  \(note)")
        } else if params["downgrade"]?.boolean == true {
            lines.append("  It has accepted a stronger scheme before: somebody may be in between.")
        }
        if let note = Self.knownUsersNote(params) { lines.append("  \(note)") }
        let problem = Self.problem(params)
        if let problem { lines.append("  \(problem)") }
        if problem == nil, let note = keep.granted(by: params).note { lines.append("  \(note)") }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func safety(_ params: JSON) -> String {
        let space = params["protectionSpace"]
        if space?["protocol"]?.string == "https" { return "The connection is encrypted." }
        if space?["receivesCredentialSecurely"]?.boolean == true {
            return "The connection is not encrypted; the password itself is not sent."
        }
        switch space?["authenticationMethod"]?.string {
        case AuthenticationMethod.ntlm.rawValue:
            return "NOT SECURE: what is sent can be relayed, and the password guessed from it."
        case AuthenticationMethod.bearer.rawValue:
            return "The connection is not encrypted: a token is sent to this machine itself, and to no other."
        default: return "NOT SECURE: the password can be read by everybody on the way."
        }
    }
}
