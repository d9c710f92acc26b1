import ArgumentParser

extension CommandConfiguration {
    /// - Parameters:
    ///   - discussion: what the help says before the examples.
    ///   - examples: command lines.
    init(
        _ name: String, _ abstract: String, _ discussion: String? = nil, examples: String..., version: String = "",
        subcommands: [any ParsableCommand.Type] = []
    ) {
        let heading = examples.count == 1 ? "Example:" : "Examples:"
        let list = ([heading] + examples.map { "  \($0)" }).joined(separator: "\n")
        self.init(
            commandName: name, abstract: abstract, discussion: discussion.map { "\($0)\n\n\(list)" } ?? list,
            version: version, subcommands: subcommands)
    }
}
