import JSONText
import WatchwordClient
import WatchwordProtocol

/// The prompts of one transfer at the terminal. A retry reuses the answers of earlier attempts.
struct TransferQuestions {
    private let question: TerminalQuestion
    /// The last challenge for a login in this attempt that was passed on to an agent for lack of a terminal.
    private(set) var unansweredLogin: JSON?
    /// The last server certificate in this attempt that was passed on to an agent for lack of a terminal.
    private(set) var unansweredTrust: JSON?
    private var answers: [(space: JSON, answer: ChallengeAnswer)] = []
    private var isRetry = false

    init(_ question: TerminalQuestion) { self.question = question }

    var isInsecure: Bool { question.isInsecure }

    /// Starts another attempt.
    /// - Parameter isRetry: whether earlier answers may be reused.
    mutating func beginAttempt(isRetry: Bool) {
        (unansweredLogin, unansweredTrust) = (nil, nil)
        self.isRetry = isRetry
    }

    func canAsk(about params: JSON) -> Bool { question.canAsk(about: params) }

    /// Answers a challenge: in a retry with the earlier answer, otherwise by a prompt.
    /// - Parameter willAsk: called before the user is asked.
    /// - Returns: the answer; `nil` if the prompt was interrupted or withdrawn.
    mutating func answer(_ challenge: IncomingChallenge, willAsk: () -> Void) -> ChallengeAnswer? {
        let space = challenge.params["protectionSpace"] ?? [:]
        let isFirst = (challenge.params["previousFailureCount"]?.integer ?? 0) == 0
        if isRetry, isFirst, let known = answers.last(where: { $0.space == space }) { return known.answer }
        guard let terminal = Terminal() else {
            if TerminalQuestion.kind(challenge.params) == .serverTrust {
                unansweredTrust = challenge.params
            } else {
                unansweredLogin = challenge.params
            }
            return .useDefault
        }
        willAsk()
        let answer = question.ask(challenge, at: terminal)
        if let answer { answers = answers.filter { $0.space != space } + [(space, answer)] }
        return answer
    }

    /// Whether the last login prompt already explains the response, because both are of the same server or proxy.
    func explains(_ unused: LoginDiagnostic) -> Bool { question.lastLogin.map(unused.isAnswer) ?? false }

    /// Returns the accepted logins of `result` that the command wants in the keyring.
    func loginsForKeyring(_ result: JSON, of item: FetchItem) -> [KeyringLogin] {
        guard question.storage == .keyring else { return [] }
        return [
            KeyringLogin(result, ofOptionFor: item.params),
            KeyringLogin(result["auth"], typedFor: question.lastLogin),
            KeyringLogin(result["proxyAuth"], typedFor: question.lastProxyLogin),
        ].compactMap(\.self)
    }
}
