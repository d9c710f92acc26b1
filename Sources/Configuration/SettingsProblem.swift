/// A problem in the configuration file.
public struct SettingsProblem: Sendable, Equatable {
    /// The line, counted from 1; `nil` if the problem concerns the whole file.
    public let line: Int?
    /// The key or the table, with dots; `nil` if the problem concerns neither.
    public let key: String?
    /// The error message, which says how to fix the problem.
    public let text: String

    init(line: Int?, key: String? = nil, _ text: String) {
        self.line = line
        self.key = key
        self.text = text
    }
}

extension SettingsProblem: CustomStringConvertible {
    /// The problem in one line.
    public var description: String {
        [line.map { "line \($0)" }, key, text].compactMap(\.self).joined(separator: ": ")
    }
}

/// All problems of a configuration file, ordered by line.
public struct InvalidSettings: Error, Equatable {
    /// The problems; never empty.
    public let problems: [SettingsProblem]
}

extension InvalidSettings: CustomStringConvertible {
    /// One line for each problem.
    public var description: String { Self.text(problems) }

    /// The number of problems that are listed; a file of the wrong kind has any number.
    static let mostListed = 50

    /// Returns one line for each problem, and one for those that are not listed.
    public static func text(_ problems: [SettingsProblem]) -> String {
        let rest = problems.count - mostListed
        let listed = problems.prefix(mostListed).map(\.description)
        return (listed + (rest > 0 ? ["and \(rest) more problems"] : [])).joined(separator: "\n")
    }
}
