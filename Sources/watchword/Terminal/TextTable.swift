import CPlatform

/// A table with aligned columns.
enum TextTable {
    /// The limit in columns for the width of a column. A wider cell is not truncated, and displaces the rest of its line only.
    private static let widestColumn = 60

    static func text(_ rows: [[String]]) -> String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { $0.count > column ? width($0[column]) : 0 }.filter { $0 <= widestColumn }.max() ?? 0
        }
        return rows.map { row in line(row, widths) }.joined(separator: "\n")
    }

    private static func line(_ row: [String], _ widths: [Int]) -> String {
        let cells = zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - width($0))) }
        let line = cells.joined(separator: "  ")
        return String(line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)])
    }

    /// Returns the width on a terminal in columns.
    private static func width(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + Int(watchword_terminal_width($1.value)) }
    }
}
