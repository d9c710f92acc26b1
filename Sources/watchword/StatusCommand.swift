import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show what the broker knows of itself.")

    @Flag(help: "Print the broker's own answer, as JSON.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "The broker's socket, in place of $WATCHWORD_SOCKET or the user's run-time folder.", valueName: "path"))
    var socket: String?

    func run() throws {
        do throws(ClientFailure) {
            let location = SocketLocation(
                explicit: socket, environment: { name in getenv(name).map { String(cString: $0) } }, uid: getuid())
            let status = try BrokerConnection(location).call(.serverStatus)
            print(json ? String(decoding: status.serialized(), as: UTF8.self) : Self.text(status, path: location.path))
        } catch {
            throw report(error)
        }
    }

    private static func text(_ status: JSON, path: String) -> String {
        let number = { (names: String...) in names.reduce(status as JSON?) { $0?[$1] }?.integer ?? 0 }
        let uptime = Duration.milliseconds(number("uptimeMs"))
        return [
            ("Broker", "\(status["version"]?.string ?? "?"), process \(number("pid")), up \(uptime.formattedSeconds)"),
            ("Socket", path),
            ("Connections", "\(number("connections"))"),
            ("Fetches", "\(number("fetches", "running")) running, \(number("fetches", "done")) done"),
            (
                "Challenges",
                "\(number("challenges", "pending")) open, \(number("challenges", "answered")) answered, \(number("challenges", "timedOut")) timed out"
            ),
            ("Session", "\(number("session", "entries")) log-ins remembered"),
            ("Keyring", "\(status["keyring"]?["state"]?.string ?? "?"). \(status["keyring"]?["reason"]?.string ?? "")"),
            (
                "Network",
                "\(number("engine", "connectionsOpened")) connections opened, \(number("engine", "connectionsReused")) times reused"
            ),
        ].map { "\($0.0):".padded(to: 13) + $0.1 }.joined(separator: "\n")
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
