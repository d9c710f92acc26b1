internal import WatchwordCore
internal import WatchwordProtocol

/// A rule that is written as one string.
protocol TextRule: Sendable {
    /// - Throws: `Refusal` with the reason, and an example.
    init(_ text: String) throws(Refusal)

    /// The rule as it is written in the file.
    var text: String { get }

    /// Whether both rules cannot be in one list.
    func excludes(_ other: Self) -> Bool
}

extension TextRule {
    func excludes(_ other: Self) -> Bool { false }
}

extension ReleaseRule: TextRule {}

extension CredentialCommand: TextRule {
    func excludes(_ other: Self) -> Bool { hosts == other.hosts }
}

extension SchemeOrder: TextRule {
    func excludes(_ other: Self) -> Bool { hosts == other.hosts }
}

extension ConfigurationOption {
    /// Makes an option for a list of strings, each of which is a rule.
    static func rules<Rule: TextRule & SendableMetatype>(
        _ key: String, _ type: ValueType, _ place: Place<[Rule]>, _ summary: String
    ) -> ConfigurationOption {
        ConfigurationOption(
            key, type, summary,
            written: { "[\($0[keyPath: place].map { "\"\($0.text)\"" }.joined(separator: ", "))]" },
            change: { option, value, settings in
                guard case .strings(let texts) = value else { return [option.wrongType(value)] }
                var (rules, problems): ([Rule], [ValueProblem]) = ([], [])
                for text in texts {
                    do throws(Refusal) {
                        let rule = try Rule(text.text)
                        guard !rules.contains(where: rule.excludes) else {
                            throw Refusal("duplicate of an earlier string, \"\(text.text.shortened)\"; remove one")
                        }
                        rules.append(rule)
                    } catch {
                        problems.append(ValueProblem(line: text.line, text: error.text))
                    }
                }
                if problems.isEmpty { settings[keyPath: place] = rules }
                return problems
            })
    }
}
