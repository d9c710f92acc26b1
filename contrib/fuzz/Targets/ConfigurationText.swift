import Configuration

/// Checks that every problem names an existing line and is one line without control characters, and that a comment before the
/// text shifts the line numbers by one and changes nothing else.
func checkConfiguration(_ bytes: [UInt8]) throws {
    let problems = try checkedProblems(bytes)
    guard !bytes.starts(with: [0xEF, 0xBB, 0xBF]), bytes.count + 2 <= SettingsFile.largestSize else { return }
    let moved = try checkedProblems(Array("#\n".utf8) + bytes)
    let expected = problems.map { problem in problem.line.map { $0 + 1 } }
    try hold(moved.map(\.line) == expected, "\(moved) one line further down, \(problems) before")
    try hold(moved.map(\.key) == problems.map(\.key), "\(moved) one line further down, \(problems) before")
}

private func checkedProblems(_ bytes: [UInt8]) throws -> [SettingsProblem] {
    guard case .failure(let invalid) = SettingsFile.parse(bytes) else { return [] }
    let lines = bytes.count { $0 == 0x0A } + 1
    try hold(!invalid.problems.isEmpty, "rejected without a problem")
    for problem in invalid.problems {
        try hold((1...lines).contains(problem.line ?? 1), "\(problem) in a text of \(lines) lines")
        try hold(!"\(problem)".hasControlCharacters, "\(problem) is not clean")
    }
    return invalid.problems
}
