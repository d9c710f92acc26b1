import ArgumentParser
import Glibc
import JSONText

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "doctor", "Diagnose login problems and suggest fixes.",
        """
        Changes nothing, starts no broker, and contacts no server. Exits with 1 if a finding is marked "bad"; warnings do \
        not count.
        """,
        examples: "watchword doctor", "watchword doctor --json")

    @Flag(help: "Print the findings as JSON.")
    var json = false

    @OptionGroup var broker: SocketOption

    func run() throws {
        let findings = BrokerCheck(broker.location).findings + EnvironmentCheck().findings
        if json {
            let all: JSON = ["findings": .array(findings.map(\.json))]
            print(all.line)
        } else {
            for finding in findings { print(finding.line) }
        }
        if findings.contains(where: { $0.verdict == .bad }) { throw ExitCode(ExitStatus.refused) }
    }
}

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

/// Colours on standard output. Used only on a terminal, and not with $NO_COLOR (https://no-color.org).
enum Style: String {
    case good = "32"
    case doubtful = "33"
    case bad = "31"
    case strong = "1"

    private static let isUsed: Bool = {
        let noColor = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? true
        return !noColor && !isDumb && isatty(STDOUT_FILENO) == 1
    }()

    func callAsFunction(_ text: String) -> String { Self.isUsed ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text }
}
