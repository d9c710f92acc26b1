import ArgumentParser
import JSONText
import WatchwordProtocol

struct KeyringStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Say whether the keyring can be used, and if not, why.",
        discussion: """
            Example:
              watchword keyring status
            """)

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func run() throws {
        let status = try broker.call(.keyringStatus)
        output.show(status, KeyringText.line(status))
    }
}

/// What is said of the keyring.
enum KeyringText {
    /// The state, and the reason where there is one.
    static func line(_ status: JSON?) -> String {
        let state = (status?["state"]?.string ?? "unknown").shortened
        return status?["reason"]?.string.map { "\(state). \(safe($0))" } ?? state
    }

    /// Says that the keyring had no part in something, if so, and unless it was switched off.
    static func noteAbsence(_ status: JSON?) {
        guard ["locked", "unavailable"].contains(status?["state"]?.string), status?["kind"]?.string != "disabled" else {
            return
        }
        complain("The keyring is left out: \(line(status))")
    }

    /// A sentence may be longer than what `shortened` leaves of it.
    static func safe(_ sentence: String) -> String {
        sentence.split(separator: " ").map { String($0).shortened }.joined(separator: " ")
    }
}
