import ArgumentParser
import WatchwordProtocol

/// The error message for a mistyped subcommand.
enum SubcommandSuggestion {
    /// Returns a message if `arguments` name an unknown subcommand, with the most similar known one, if any.
    static func text(_ arguments: [String], of command: any ParsableCommand.Type = WatchwordCommand.self) -> String? {
        var (command, names) = (command, [name(command)])
        for argument in arguments {
            let known = command.configuration.subcommands
            guard !known.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return nil }
            guard let next = known.first(where: { name($0) == argument }) else {
                let similar = known.map(name)
                    .filter { abs($0.utf8.count - argument.utf8.count) <= 2 }.map { ($0, distance(argument, $0)) }.min {
                        $0.1 < $1.1
                    }
                let advice = similar.flatMap { $0.1 <= 2 ? "; did you mean \"\($0.0)\"?" : nil }
                let path = names.joined(separator: " ")
                return "\"\(argument.shortened)\" is not a command of \(path)" + (advice ?? "; see \(path) --help")
            }
            command = next
            names.append(name(next))
        }
        return nil
    }

    private static func name(_ command: any ParsableCommand.Type) -> String { command.configuration.commandName ?? "" }

    /// Returns the number of characters to insert, remove, replace or swap with their neighbour.
    static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var rows = [Array(0...right.count)]
        for (row, character) in left.enumerated() {
            var costs = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(
                    costs[column] + 1, rows[row][column + 1] + 1, rows[row][column] + (character == other ? 0 : 1))
                if row > 0, column > 0, character == right[column - 1], left[row - 1] == other {
                    cost = min(cost, rows[row - 1][column - 1] + 1)
                }
                costs.append(cost)
            }
            rows.append(costs)
        }
        return rows[left.count][right.count]
    }
}
