import ArgumentParser
import WatchwordProtocol

struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock", abstract: "Let the broker use and store credentials again.",
        discussion: """
            The session remains empty until the next login. The keyring has its own lock. After each wrong passphrase, the \
            delay before the next attempt grows.

            Examples:
              watchword unlock
              watchword unlock --passphrase
            """)

    @OptionGroup var passphrase: PassphraseOptions
    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(BrokerUnlock(passphrase: passphrase.read(isNew: false)))
        output.show(result, "Unlocked.")
    }
}
