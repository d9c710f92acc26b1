import JSONText
import WatchwordClient
import WatchwordProtocol

/// Prompts for the challenges of one fetch at the terminal. Remembers entries that need not be typed again.
final class TerminalQuestion {
    let interrupt: Int32
    /// The requested persistence of the entries.
    let storage: LoginStorage
    /// Whether untrusted certificates are shown and accepted for this fetch (`-k`).
    let isInsecure: Bool
    /// Whether `--pinnedpubkey` decides about certificates, without a prompt.
    let isPinned: Bool
    /// The client certificate that was used last.
    var lastCertificate: CertificateCredential?
    /// The last challenge that requires a login.
    private(set) var lastLogin: JSON?
    /// The last challenge that requires a login for a proxy.
    private(set) var lastProxyLogin: JSON?

    init(_ params: FetchRunParams, storage: LoginStorage, isInsecure: Bool, interrupt: Int32) {
        self.interrupt = interrupt
        self.storage = storage
        self.isInsecure = isInsecure
        isPinned = params.tls.pin != nil
        lastCertificate = params.tls.certificate
    }

    /// Returns the answer to `auth/canAuthenticate`.
    func canAsk(about params: JSON) -> Bool { Self.kind(params) != .serverTrust || !isPinned }

    /// Returns `nil` if the user has interrupted the prompt, or the broker has withdrawn the question.
    func ask(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let kind = Self.kind(challenge.params)
        if kind != .serverTrust && kind != .clientCertificate {
            lastLogin = challenge.params
            if SpaceText.isProxy(challenge.params) { lastProxyLogin = challenge.params }
        }
        do throws(Ended) {
            return switch kind {
            case .httpBasic, .httpDigest, .ntlm: try askLogin(challenge, at: terminal)
            case .bearer: try askToken(challenge, at: terminal)
            case .serverTrust: askTrust(challenge, at: terminal)
            case .clientCertificate: try askCertificate(challenge, at: terminal)
            case .negotiate, .other, nil: decline(challenge, at: terminal)
            }
        } catch { return error.answer }
    }

    static func kind(_ params: JSON) -> AuthenticationMethod? {
        params["protectionSpace"]?["authenticationMethod"]?.string.flatMap(AuthenticationMethod.init(rawValue:))
    }

    /// Declines a scheme that is not supported here. An agent may support it.
    private func decline(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer {
        let schemes = (challenge.params["offers"]?.elements ?? []).compactMap { $0["scheme"]?.string?.shortened }
        let names = schemes.isEmpty ? "an unknown scheme" : "the scheme \(schemes.joined(separator: ", "))"
        terminal.show(
            "\(SpaceText.site(challenge.params)) requires a login with \(names), which is not supported here.\n")
        return .useDefault
    }

    // MARK: Common to all kinds

    func readLine(
        _ prompt: String, at terminal: borrowing Terminal, _ challenge: IncomingChallenge, echo: Bool
    ) -> Terminal.Line {
        let line = terminal.readLine(prompt, echo: echo, interrupt: interrupt, of: challenge)
        switch line {
        case .withdrawn where challenge.isAnsweredInBrowser: terminal.show("\n")
        case .withdrawn: terminal.show(Terminal.withdrawn)
        case .interrupted: terminal.show("\n")
        case .end: if !echo { terminal.show("\n") }
        case .text: break
        }
        return line
    }

    /// The end of a question before its last line. The answer is `nil` if the question was interrupted or withdrawn.
    struct Ended: Error {
        var answer: ChallengeAnswer?
    }

    /// Reads a line of an answer.
    /// - Parameter missing: what the fetch continues without if the input ends.
    func line(
        _ prompt: String, orWithout missing: String, _ challenge: IncomingChallenge, at terminal: borrowing Terminal,
        echo: Bool = true
    ) throws(Ended) -> Secret {
        while true {
            switch readLine(prompt, at: terminal, challenge, echo: echo) {
            case .text(let text) where text.isTypedText: return text
            case .text:
                terminal.show(
                    "The line is not UTF-8, or contains a control character, such as that of an arrow key. Type it again.\n"
                )
            case .end: throw proceed(without: missing, at: terminal)
            case .interrupted, .withdrawn: throw Ended()
            }
        }
    }

    func proceed(without missing: String, at terminal: borrowing Terminal) -> Ended {
        terminal.show("Continuing without \(missing).\n")
        return Ended(answer: .proceed)
    }

    /// Returns a line with the time for which the login or certificate is stored, if it is stored for the session.
    func sessionNote(_ params: JSON) -> String? {
        guard storage.granted(by: params).persistence == .forSession else { return nil }
        return SessionText.duration(params).map { "Stored for this session: \($0)." }
    }

    /// Returns the problem with the last answer; `nil` for the first question.
    static func problem(_ params: JSON) -> String? {
        if let problem = params["error"]?["message"]?.string { return problem.shortened(to: 300) }
        let failures = params["previousFailureCount"]?.integer ?? 0
        guard failures > 0 else { return nil }
        // Before the first answer, a stored login was refused.
        let refused = StoredSource.words(params["proposedCredential"]?["source"]?.string).map { "login \($0)" }
        return "The server has refused the \(refused ?? "last answer") (\(failures) failed so far)."
    }
}

extension Secret {
    /// Whether this is UTF-8 without control characters. The broker refuses any other answer, which would end the fetch.
    fileprivate var isTypedText: Bool {
        withUnsafeBytes { bytes in
            !bytes.contains { $0 < 0x20 || $0 == 0x7F } && JSON.string(secret: bytes) != nil
        }
    }
}

/// Asks whether to accept a server certificate.
extension TerminalQuestion {
    func askTrust(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> ChallengeAnswer? {
        let params = challenge.params
        guard let shown = ShownCertificate(params) else { return .useDefault }
        terminal.show(shown.text(site: SpaceText.site(params), problem: Self.problem(params)))
        if isInsecure && !shown.requiresPrompt {
            terminal.show("Accepted for this fetch only, because of -k.\n")
            return answer(shown, .none)
        }
        let choices = Self.choices(params)
        if choices.contains(where: { $0.persistence == .forSession }), let time = SessionText.duration(params) {
            terminal.show("  For the session: \(time).\n")
        }
        let word = terminal.choose("Accept it?", among: choices.map(\.word), interrupt: interrupt, of: challenge)
        guard let word else { return nil }
        return choices.first { $0.word == word }.map { answer(shown, $0.persistence) } ?? .reject
    }

    private func answer(_ shown: ShownCertificate, _ persistence: Persistence) -> ChallengeAnswer {
        .credential(.trust(TrustCredential(spkiSha256: shown.keyHash, persistence: persistence)))
    }

    /// Returns the possible answers: for this fetch, and for the session and permanently if the challenge allows that.
    private static func choices(_ params: JSON) -> [(word: String, persistence: Persistence)] {
        let allowed = (params["persistenceAllowed"]?.elements ?? []).compactMap(\.string)
        let all: [(String, Persistence)] = [("fetch", .none), ("session", .forSession), ("always", .permanent)]
        return all.filter { $0.1 == .none || allowed.contains($0.1.rawValue) }
    }
}
