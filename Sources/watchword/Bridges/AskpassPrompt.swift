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

/// The server in a prompt of git: `Username for 'https://host': `, `Password for 'https://bob@host': `.
struct PromptTarget {
    let pattern: SpacePattern
    let user: ExactText?
    let wantsUser: Bool

    /// - Parameter userInfo: The user information that was removed from the URL in the prompt.
    init?(_ question: String, userInfo: Secret?) {
        wantsUser = question.hasPrefix("Username for '")
        // The prompt must match completely, and the URL must not contain characters that could disguise its host, because other
        // programs show untrusted text in their prompts.
        guard wantsUser || question.hasPrefix("Password for '"), question.hasSuffix("': "),
            let end = question.lastIndex(of: "'"), !question.contains(where: { "?#\\".contains($0) })
        else { return nil }
        let start = question.index(question.startIndex, offsetBy: "Username for '".count)
        guard start < end, let pattern = try? Site(url: String(question[start..<end])).pattern else { return nil }
        self.pattern = pattern
        guard let userInfo else {
            user = nil
            return
        }
        // User information with a password never becomes a `String`. Without the user name nothing matches, because
        // another user's password must not be used.
        let decoded = userInfo.withUnsafeBytes { bytes in
            bytes.contains(UInt8(ascii: ":")) ? nil : Secret(percentDecoding: bytes[...])
        }
        guard let user = decoded?.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else { return nil }
        self.user = ExactText(user)
    }
}

/// The program that has started this one.
enum CallingProgram {
    /// Returns the name of the parent's program file; if the parent runs as another user, such as sudo, the name of the
    /// process (proc(5), `comm`). `nil` if the parent has exited. Any program can pretend to be another one: it can start
    /// this process and then execute the other program.
    static func name() -> String? {
        let parent = getppid()
        guard parent > 1 else { return nil }
        let path = SmallFile.target(of: "/proc/\(parent)/exe")
        let file = path?.split(separator: "/").last.map { String($0).replacing(" (deleted)", with: "") }
        let process = SmallFile.text(of: "/proc/\(parent)/comm")?.split(separator: "\n").first.map { String($0) }
        guard getppid() == parent else { return nil }
        return file ?? process
    }
}
