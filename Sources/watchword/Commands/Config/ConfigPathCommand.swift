import ArgumentParser
import Glibc
import JSONText
import WatchwordProtocol

struct ConfigPathCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path", abstract: "Print the path of the broker's configuration.",
        discussion: """
            The file need not exist: without it, all options have their defaults.

            Example:
              "${EDITOR:-vi}" "$(watchword config path)"
            """)

    @Flag(help: "Print the path as JSON.")
    var json = false

    func run() throws {
        guard let path = ConfigurationLocation.path(environment: { name in getenv(name).map { String(cString: $0) } })
        else {
            throw refusal("no path for the configuration; set $HOME or $XDG_CONFIG_HOME to an absolute path")
        }
        print(json ? (["path": .string(path)] as JSON).line : path)
    }
}
