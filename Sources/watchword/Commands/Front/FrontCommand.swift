import ArgumentParser
import JSONText
import WatchwordProtocol

struct FrontCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "front", abstract: "Show the local proxies and sites that the broker serves.",
        discussion: """
            Example:
              watchword front status
            """,
        subcommands: [FrontStatusCommand.self])
}

struct FrontStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the fronts of the configuration, of \"watchword run\" and of \"watchword serve\".",
        discussion: """
            Exits with 1 if a front of the configuration does not listen.

            Example:
              watchword front status
            """)

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(FrontList())
        let fronts = result["fronts"]?.elements ?? []
        let rows = fronts.map(Self.row)
        output.show(result, rows.isEmpty ? "No fronts." : TextTable.text([Self.heading] + rows))
        let problems = fronts.compactMap { $0["problem"]?.string }
        for problem in problems { printError(problem) }
        if !problems.isEmpty { throw ExitCode(ExitStatus.refused) }
    }

    private static let heading = ["ADDRESS", "SERVES", "OPENED BY", "CONNECTIONS", "REQUESTS", "NAME FOR BROWSERS"]

    private static func row(_ front: JSON) -> [String] {
        [
            (front["listen"]?.string ?? "").shortened(to: 120),
            (front["url"]?.string ?? "any site (proxy)").shortened(to: 200),
            front["problem"] != nil
                ? "not listening" : front["pid"]?.integer.map { "process \($0)" } ?? "configuration",
            "\(front["connections"]?.integer ?? 0)", "\(front["requests"]?.integer ?? 0)",
            (front["name"]?.string ?? "").shortened(to: 120),
        ]
    }
}
