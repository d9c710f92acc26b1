import ArgumentParser
import JSONText
import WatchwordProtocol

struct CredentialsDefaultCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "default", abstract: "Set a site's default user.",
        discussion: """
            Example:
              watchword credentials default session:7
            """)

    @Argument(
        help: "An id from the first column of: watchword credentials list",
        completion: .listed(by: CredentialList(pattern: nil), "credentials", "id"))
    var id: String

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws {
        switch try CredentialID(argument: id) {
        case .session, .keyring: break
        case .trust, .certificate: throw ValidationError("ID must be the id of a password or a token")
        }
    }

    func run() throws {
        let params = CredentialSetDefault(id: try CredentialID(argument: id))
        let result = try broker.call(params, within: Patience.withPeople)
        output.show(result, "\(params.id.text.shortened) is now the default")
    }
}
