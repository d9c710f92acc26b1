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
                let similar = SimilarName.nearest(to: argument, among: known.map(name))
                let advice = similar.map { "; did you mean \"\($0)\"?" }
                let path = names.joined(separator: " ")
                return "\"\(argument.shortened)\" is not a command of \(path)" + (advice ?? "; see \(path) --help")
            }
            command = next
            names.append(name(next))
        }
        return nil
    }

    private static func name(_ command: any ParsableCommand.Type) -> String { command.configuration.commandName ?? "" }
}
