import ArgumentParser
import Glibc
import JSONText
import WatchwordProtocol

struct ConfigPathCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path", abstract: "Print where the broker looks for its configuration.",
        discussion: """
            The file need not exist: without it everything has its default.

            Example:
              "${EDITOR:-vi}" "$(watchword config path)"
            """)

    @Flag(help: "Print it as JSON.")
    var json = false

    func run() throws {
        guard let path = ConfigurationLocation.path(environment: { name in getenv(name).map { String(cString: $0) } })
        else {
            throw refusal("There is no place for a configuration: set $HOME or $XDG_CONFIG_HOME to an absolute path.")
        }
        print(json ? (["path": .string(path)] as JSON).line : path)
    }
}
