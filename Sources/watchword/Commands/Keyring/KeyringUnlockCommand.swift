import ArgumentParser
import JSONText
import WatchwordProtocol

struct KeyringUnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock", abstract: "Unlock the keyring, which asks for its password in its own window.",
        discussion: """
            Ctrl-C ends the wait.

            Example:
              watchword keyring unlock
            """)

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func run() throws {
        let status = try broker.call(KeyringUnlock(), within: Patience.withPeople)
        guard status["state"]?.string == "usable" else { throw refusal("keyring is \(KeyringText.line(status))") }
        output.show(status, "The keyring is unlocked.")
    }
}
