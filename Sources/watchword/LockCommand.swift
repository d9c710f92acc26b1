import ArgumentParser
import WatchwordProtocol

struct LockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock", abstract: "Forget the session, and use and keep nothing until it is unlocked.",
        discussion: """
            Fetches go on, with what is typed for them. What is in the keyring stays there, unused.

            Example:
              watchword lock
            """)

    @OptionGroup var broker: SocketOption

    func run() throws {
        _ = try broker.call(.brokerLock)
        print("Locked: nothing stored is used or kept until: watchword unlock")
    }
}
