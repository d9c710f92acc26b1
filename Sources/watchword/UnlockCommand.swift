import ArgumentParser
import WatchwordProtocol

struct UnlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock", abstract: "Let the broker use and keep credentials again.",
        discussion: """
            The session stays empty until somebody logs in; the keyring has a lock of its own.

            Example:
              watchword unlock
            """)

    @OptionGroup var broker: SocketOption

    func run() throws {
        _ = try broker.call(.brokerUnlock)
        print("Unlocked.")
    }
}
