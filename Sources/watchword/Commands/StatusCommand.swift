import ArgumentParser
import JSONText
import WatchwordProtocol

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the status of the broker.",
        discussion: """
            Example:
              watchword status
            """)

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func run() throws {
        let status = try broker.call(ServerStatus())
        output.show(status, Self.text(status, broker.location.path))
    }

    /// Returns the status as lines.
    /// - Parameter path: The path of the socket.
    static func text(_ status: JSON, _ path: String) -> String {
        let number = { (names: String...) in names.reduce(status as JSON?) { $0?[$1] }?.integer ?? 0 }
        let opened = counted(number("engine", "connectionsOpened"), "connection")
        let reused = counted(number("engine", "connectionsReused"), "time")
        let uptime = Duration.milliseconds(number("uptimeMs"))
        return [
            ("Broker", "\(status["version"]?.string ?? "?"), process \(number("pid")), up \(uptime.formattedSeconds)"),
            ("Socket", path),
            ("Connections", "\(number("connections"))"),
            (
                "Fetches",
                "\(number("fetches", "running")) running (\(number("fetches", "waiting")) waiting for another login), \(number("fetches", "done")) done"
            ),
            (
                "Challenges",
                "\(number("challenges", "pending")) open, \(number("challenges", "answered")) answered, \(number("challenges", "timedOut")) timed out"
            ),
            ("Agents", agents(status)),
            ("Session", counted(number("session", "entries"), "saved login")),
            ("Keyring", KeyringText.line(status["keyring"])),
            (
                "Locked",
                status["session"]?["locked"]?.boolean == true
                    ? "yes; unlock with: watchword unlock" : "no"
            ),
            ("Filter", status["systemCallFilter"]?.boolean == true ? "system calls are filtered" : "none"),
            ("Network", "\(opened) opened, reused \(reused)"),
        ].map { "\($0.0):".padded(to: 13) + $0.1 }.joined(separator: "\n")
    }

    private static func agents(_ status: JSON) -> String {
        let names = (status["agents"]?.elements ?? []).map { agent in
            "\((agent["name"]?.string ?? "?").shortened) (priority \(agent["priority"]?.integer ?? 0))"
        }
        return names.isEmpty ? "none" : names.joined(separator: ", ")
    }
}

extension Duration {
    fileprivate var formattedSeconds: String {
        let seconds = components.seconds
        return seconds < 3600
            ? "\(seconds / 60) min \(seconds % 60) s" : "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
