@testable import Configuration

/// Returns the settings of a configuration text; `nil` if it has a problem.
func settings(_ text: String) -> Settings? { try? SettingsFile.parse(Array(text.utf8)).get() }

/// Everything that is wrong with a text.
func problems(_ bytes: [UInt8]) -> [SettingsProblem] {
    if case .failure(let invalid) = SettingsFile.parse(bytes) { invalid.problems } else { [] }
}

/// Everything that is wrong with a text.
func problems(_ text: String) -> [SettingsProblem] { problems(Array(text.utf8)) }

/// Returns a file with one option, whose key is in line 3.
func file(_ option: ConfigurationOption, _ value: String) -> String {
    "# one option\n[\(option.table)]\n\(option.name) = \(value)\n"
}
