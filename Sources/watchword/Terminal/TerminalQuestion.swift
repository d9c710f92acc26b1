import JSONText
import WatchwordClient
import WatchwordProtocol

/// Asks the person at the terminal for what a server or a proxy wants to know. One for a whole fetch: it remembers what need
/// not be typed again.
final class TerminalQuestion {
    let interrupt: Int32
    /// How long what is typed is to be kept.
    let keep: Keep
    /// `-k`: untrusted certificates are accepted for this fetch, and shown.
    let isInsecure: Bool
    /// `--pinnedpubkey` has decided which certificates are good: nobody is asked.
    let isPinned: Bool
    /// What was shown last to a server that asks for a client certificate.
    var lastCertificate: CertificateCredential?
    /// The last challenge that asks for a log-in.
    private(set) var lastLogin: JSON?

    init(_ params: FetchRunParams, keep: Keep, isInsecure: Bool, interrupt: Int32) {
        self.interrupt = interrupt
        self.keep = keep
        self.isInsecure = isInsecure
        isPinned = params.tls.pin != nil
        lastCertificate = params.tls.certificate
    }

    /// The answer to `auth/canAuthenticate`. Without a terminal an agent may still log in; about certificates nobody is asked,
    /// but `-k` wants to know which one it was.
    func canAsk(about params: JSON, hasTerminal: Bool) -> Bool {
        switch Self.kind(params) {
        case .serverTrust: !isPinned && (hasTerminal || isInsecure)
        case .clientCertificate: hasTerminal
        default: true
        }
    }

    /// `nil` when there is nothing to answer any more: the user has interrupted, or the broker has withdrawn the question.
    func ask(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let kind = Self.kind(challenge.params)
        if kind != .serverTrust && kind != .clientCertificate { lastLogin = challenge.params }
        return switch kind {
        case .httpBasic, .httpDigest, .ntlm: askLogin(challenge, at: terminal)
        case .bearer: askToken(challenge, at: terminal)
        case .serverTrust: askTrust(challenge, at: terminal)
        case .clientCertificate: askCertificate(challenge, at: terminal)
        case .negotiate, .other, nil: decline(challenge, at: terminal)
        }
    }

    private static func kind(_ params: JSON) -> AuthenticationMethod? {
        params["protectionSpace"]?["authenticationMethod"]?.string.flatMap(AuthenticationMethod.init(rawValue:))
    }

    /// An agent may know how to answer.
    private func decline(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer {
        let schemes = (challenge.params["offers"]?.elements ?? []).compactMap { $0["scheme"]?.string?.shortened }
        let names = schemes.isEmpty ? "an unknown scheme" : "the scheme \(schemes.joined(separator: ", "))"
        terminal.show("\(SpaceText.site(challenge.params)) asks for \(names), which cannot be answered here.\n")
        return .useDefault
    }

    // MARK: Common to all kinds

    func readLine(
        _ prompt: String, at terminal: borrowing Terminal, _ challenge: IncomingChallenge, echo: Bool
    ) -> Terminal.Line {
        let line = terminal.readLine(
            prompt, echo: echo, interrupt: interrupt, broker: challenge.descriptor,
            isStillOpen: { challenge.isStillOpen }, watches: { challenge.watches })
        switch line {
        case .withdrawn:
            terminal.show("\nThe question was withdrawn: it was open for too long, or the fetch has ended.\n")
        case .interrupted: terminal.show("\n")
        case .end: if !echo { terminal.show("\n") }
        case .text: break
        }
        return line
    }

    /// What was wrong with the last answer; `nil` for the first question.
    static func problem(_ params: JSON) -> String? {
        if let problem = params["error"]?["message"]?.string { return problem.shortened(to: 300) }
        let failures = params["previousFailureCount"]?.integer ?? 0
        return failures > 0 ? "The server has refused the last answer (\(failures) failed so far)." : nil
    }
}
