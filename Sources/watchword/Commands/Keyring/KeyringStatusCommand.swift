import ArgumentParser
import JSONText
import WatchwordProtocol

struct KeyringStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show whether the keyring is usable, and if not, why.",
        discussion: """
            Example:
              watchword keyring status
            """)

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func run() throws {
        let status = try broker.call(KeyringStatus())
        output.show(status, KeyringText.line(status))
    }
}

/// Descriptions of the keyring's state.
enum KeyringText {
    /// Returns the state, and the reason if there is one.
    static func line(_ status: JSON?) -> String {
        let state = (status?["state"]?.string ?? "unknown").shortened
        return status?["reason"]?.string.map { "\(state): \(safe($0))" } ?? state
    }

    /// Prints a warning if the keyring was not used, unless it is disabled.
    static func reportAbsence(_ status: JSON?) {
        guard ["locked", "unavailable"].contains(status?["state"]?.string), status?["kind"]?.string != "disabled" else {
            return
        }
        printError("keyring not used (\(line(status)))")
    }

    /// Makes a sentence safe for a terminal word by word, because `shortened` would truncate it.
    static func safe(_ sentence: String) -> String {
        sentence.split(separator: " ").map { String($0).shortened }.joined(separator: " ")
    }
}
