import ArgumentParser
import WatchwordProtocol

struct CredentialsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials",
        abstract: "List and change stored credentials, in the session and in the keyring. Passwords are never shown.",
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
    /// Parses the argument ID.
    init(argument: String) throws {
        guard let id = CredentialID(argument) else {
            throw ValidationError(
                "ID must be an id like session:7 from the first column of: watchword credentials list")
        }
        self = id
    }
}
