/// One thing that is wrong with the configuration file.
public struct SettingsProblem: Sendable, Equatable {
    /// Counts from 1; `nil` when the file as a whole is meant.
    public let line: Int?
    /// The key or the table, with dots; `nil` when there is none to name.
    public let key: String?
    /// What was found, what is expected and what to do, in whole sentences.
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

/// Why a file gives no settings: everything that is wrong with it, from its first line to its last.
public struct InvalidSettings: Error, Equatable {
    /// At least one.
    public let problems: [SettingsProblem]
}

extension InvalidSettings: CustomStringConvertible {
    /// One line for each problem.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
