import ArgumentParser
import CPlatform
import WatchwordProtocol

struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock", abstract: "Forget the session, and use and keep nothing until it is unlocked.",
        discussion: """
            Fetches go on, with what is typed for them. What is in the keyring stays there, unused. With a passphrase only who \
            knows it unlocks.

            Examples:
              watchword lock
              watchword lock --passphrase
            """)

    @OptionGroup var passphrase: PassphraseOptions
    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(.brokerLock, LockParams(passphrase: passphrase.read(isNew: true)).json)
        output.show(result, "Locked: nothing stored is used or kept until: watchword unlock")
    }
}

struct PassphraseOptions: ParsableArguments {
    @Flag(help: "Ask for a passphrase at the terminal.")
    var passphrase = false

    @Flag(help: "Read a passphrase from standard input: one line.")
    var passphraseStdin = false

    func validate() throws {
        guard !passphrase || !passphraseStdin else {
            throw ValidationError("--passphrase asks at the terminal, --passphrase-stdin reads: give one of them.")
        }
    }

    /// `nil` where none is to be given.
    func read(isNew: Bool) throws -> Secret? {
        if passphraseStdin { return try PasswordEntry.fromStandardInput() }
        guard passphrase else { return nil }
        return try PasswordEntry.passphrase(isNew: isNew, interrupt: watchword_interrupt_descriptor())
    }
}
