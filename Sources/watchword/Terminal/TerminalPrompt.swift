import JSONText
import WatchwordClient
import WatchwordProtocol

/// Shows the prompt of another program at the terminal of the agent (`auth/prompt`).
struct TerminalPrompt {
    let interrupt: Int32

    /// Returns the result of the request; `nil` if the prompt was withdrawn or the user interrupted it. May contain a secret.
    func ask(_ request: IncomingChallenge, at terminal: borrowing Terminal) -> JSON? {
        let params = request.params
        let kind = params["kind"]?.string.flatMap(ProgramPrompt.Kind.init(rawValue:))
        terminal.show(Self.introduction(params))
        let line = terminal.readLine(
            Self.prompt(for: kind), echo: kind != .secret, interrupt: interrupt, of: request)
        switch line {
        case .text(let text): return Self.answer(text, to: kind)
        case .end:
            terminal.show("\n")
            return Self.answer(.cancel)
        case .withdrawn:
            terminal.show("\nThe prompt was withdrawn: it was open for too long, or the program has ended.\n")
            return nil
        case .interrupted:
            terminal.show("\n")
            return nil
        }
    }

    private static func prompt(for kind: ProgramPrompt.Kind?) -> String {
        switch kind {
        case .confirmation: "Allow it? yes/NO: "
        case .information: "Press Enter to close this: "
        case .secret, .text, nil: "Your answer (Ctrl-D to cancel): "
        }
    }

    private static func answer(_ text: Secret, to kind: ProgramPrompt.Kind?) -> JSON {
        switch kind {
        case .secret, .text:
            let value = text.withUnsafeBytes { JSON.string(secret: $0) }
            return ["action": .string(PromptReply.Action.answer.rawValue), "value": value ?? ""]
        case .confirmation:
            return answer(["y", "yes"].contains(text.lowercasedWord) ? .allow : .cancel)
        case .information, nil: return answer(.cancel)
        }
    }

    private static func answer(_ action: PromptReply.Action) -> JSON { ["action": .string(action.rawValue)] }

    private static func introduction(_ params: JSON) -> String {
        let program = params["program"]?.string.map { "\"\($0.shortened)\"" } ?? "A program"
        let lines = PromptText.shown(params["text"]?.string ?? "").split(separator: "\n").map { "    \($0)\n" }
        return "\n" + RequesterText.sentence(params) + "  \(program) asks (its name and text are not verified):\n"
            + lines.joined()
    }
}

/// The prompt of another program, safe for a terminal.
enum PromptText {
    /// The limits for the characters of a line and for the lines of the prompt; the middle of a longer text is omitted. A host
    /// with a user needs up to 300 characters.
    private static let (longestLine, mostLines) = (1000, 40)

    /// Returns the prompt for display. Its line breaks remain, because ssh, for example, puts a fingerprint on its own line.
    static func shown(_ text: String) -> String {
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        let shown = lines.map { String($0).shortened(to: longestLine) }
        let (first, last) = (shown.prefix(mostLines / 2), shown.dropFirst(mostLines / 2).suffix(mostLines / 2))
        let middle = shown.count > mostLines ? ["…"] : []
        return (first + middle + last).joined(separator: "\n")
    }

    /// Returns the prompt for display before a cursor.
    static func beforeCursor(_ text: String) -> String {
        if text.isEmpty { return "Password: " }
        return shown(text) + (text.hasSuffix(" ") ? "" : " ")
    }
}
