import ArgumentParser
import CPlatform
import WatchwordProtocol

struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock", abstract: "Forget the logins of the session; use and store no credentials until unlocked.",
        discussion: """
            Fetches continue, but use only logins that are entered for them. The keyring is neither used nor changed. If a \
            passphrase is given, unlocking requires it.

            Examples:
              watchword lock
              watchword lock --passphrase
            """)

    @OptionGroup var passphrase: PassphraseOptions
    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(BrokerLock(passphrase: passphrase.read(isNew: true)))
        output.show(result, "Locked: stored credentials are neither used nor added. To unlock, run: watchword unlock")
    }
}

struct PassphraseOptions: ParsableArguments {
    @Flag(help: "Ask for a passphrase at the terminal.")
    var passphrase = false

    @Flag(help: "Read a passphrase from standard input: one line.")
    var passphraseStdin = false

    func validate() throws {
        guard !passphrase || !passphraseStdin else {
            throw ValidationError("--passphrase and --passphrase-stdin exclude each other; give one of them")
        }
    }

    /// Returns the passphrase; `nil` if neither option was given.
    func read(isNew: Bool) throws -> Secret? {
        if passphraseStdin { return try PasswordEntry.fromStandardInput() }
        guard passphrase else { return nil }
        return try PasswordEntry.passphrase(isNew: isNew, interrupt: watchword_interrupt_descriptor())
    }
}
