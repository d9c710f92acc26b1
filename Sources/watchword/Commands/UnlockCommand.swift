import ArgumentParser
import WatchwordProtocol

struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock", abstract: "Let the broker use and keep credentials again.",
        discussion: """
            The session stays empty until somebody logs in; the keyring has a lock of its own. After a wrong passphrase the \
            next try has to wait, longer each time.

            Examples:
              watchword unlock
              watchword unlock --passphrase
            """)

    @OptionGroup var passphrase: PassphraseOptions
    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(.brokerUnlock, LockParams(passphrase: passphrase.read(isNew: false)).json)
        output.show(result, "Unlocked.")
    }
}
