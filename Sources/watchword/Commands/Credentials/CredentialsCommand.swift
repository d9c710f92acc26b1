import ArgumentParser
import WatchwordProtocol

struct CredentialsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials",
        abstract: "What is kept, in the session and in the keyring. Passwords are not shown.",
        discussion: """
            Examples:
              watchword credentials list
              watchword credentials store https://intranet.example --user bob
            """,
        subcommands: [
            CredentialsListCommand.self, CredentialsStoreCommand.self, CredentialsForgetCommand.self,
            CredentialsDefaultCommand.self, CredentialsImportCommand.self,
        ])
}

extension CredentialID {
    /// The argument ID.
    init(argument: String) throws {
        guard let id = CredentialID(argument) else {
            throw ValidationError(
                "ID is one like session:7, out of the first column of: watchword credentials list")
        }
        self = id
    }
}
