import JSONText
import WatchwordClient
import WatchwordProtocol

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
        let names = (choices.map(\.word) + ["NO"]).joined(separator: "/")
        while true {
            switch readLine("Accept it? \(names): ", at: terminal, challenge, echo: true) {
            case .text(let text):
                let word = text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.lowercased()
                if word.isEmpty || ["n", "no"].contains(word) { return .reject }
                if let choice = choices.first(where: { $0.word == word || $0.word.prefix(1) == word }) {
                    return answer(shown, choice.persistence)
                }
            case .end:
                terminal.show("\n")
                return .reject
            case .interrupted, .withdrawn:
                return nil
            }
        }
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
