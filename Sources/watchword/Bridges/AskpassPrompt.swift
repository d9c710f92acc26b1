import Glibc
import WatchwordProtocol

/// The prompt of another program, and the conventions by which it called askpass.
struct AskpassPrompt {
    let text: String
    let kind: ProgramPrompt.Kind
    /// Whether a refusal is printed as "no", because the program reads a word instead of the exit status.
    let printsRefusal: Bool
    /// Whether a window is preferred to the terminal (ssh(1), SSH_ASKPASS_REQUIRE).
    let prefersAgent: Bool

    /// - Parameter environment: Returns the value of a variable.
    init(_ text: String, environment: (String) -> String?) {
        self.text = text
        let isQuestionOfSSH = text.contains("(yes/no")
        switch environment("SSH_ASKPASS_PROMPT") {
        case "confirm": kind = .confirmation
        case "none": kind = .information
        default:
            kind = isQuestionOfSSH ? .confirmation : text.lowercased().hasPrefix("username") ? .text : .secret
        }
        printsRefusal = isQuestionOfSSH && environment("SSH_ASKPASS_PROMPT") != "confirm"
        prefersAgent = ["force", "prefer"].contains(environment("SSH_ASKPASS_REQUIRE"))
    }

    /// The question for `prompt/ask`.
    var question: PromptAsk {
        PromptAsk(
            ProgramPrompt(
                text: text.isEmpty ? "Password:" : PromptText.shown(text), kind: kind, program: CallingProgram.name()))
    }
}
