import JSONText

/// The result of one check, and the advice for it.
struct Finding: Equatable {
    enum Verdict: String {
        case good, doubtful, bad
    }

    var name: String
    var verdict: Verdict
    /// The result in one sentence, safe for a terminal.
    var text: String
    /// The fix; `nil` if none is needed.
    var advice: String?

    static func good(_ name: String, _ text: String) -> Finding {
        Finding(name: name, verdict: .good, text: text, advice: nil)
    }

    static func doubtful(_ name: String, _ text: String, _ advice: String) -> Finding {
        Finding(name: name, verdict: .doubtful, text: text, advice: advice)
    }

    static func bad(_ name: String, _ text: String, _ advice: String) -> Finding {
        Finding(name: name, verdict: .bad, text: text, advice: advice)
    }

    var json: JSON {
        [
            "name": .string(name), "verdict": .string(verdict.rawValue), "text": .string(text),
            "advice": advice.map { .string($0) } ?? .null,
        ]
    }

    /// The finding as one line, followed by a second line if there is advice.
    var line: String {
        let mark =
            switch verdict {
            case .good: Style.good("ok  ")
            case .doubtful: Style.doubtful("warn")
            case .bad: Style.bad("bad ")
            }
        let first = "\(mark)  \(Style.strong(name)): \(text)"
        return advice.map { "\(first)\n        \($0)" } ?? first
    }
}
