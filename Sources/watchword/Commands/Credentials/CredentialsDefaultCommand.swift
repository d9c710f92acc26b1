import ArgumentParser
import JSONText
import WatchwordClient
import WatchwordProtocol

struct CredentialsDefaultCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "default", abstract: "Say which one is used where several users are kept for one site.",
        discussion: """
            Example:
              watchword credentials default session:7
            """)

    @Argument(help: "An id out of the first column of: watchword credentials list")
    var id: String

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws {
        switch try CredentialID(argument: id) {
        case .session, .keyring: break
        case .trust, .certificate: throw ValidationError("ID is that of a password or a token: others have no default.")
        }
    }

    func run() throws {
        let params = CredentialReference(id: try CredentialID(argument: id))
        let result: JSON
        do throws(ClientFailure) {
            result = try BrokerConnection(broker.location).call(.credentialSetDefault, params.json)
        } catch .refused(let error) where error.kind == .unknownCredential {
            throw refusal("No credential has this id. \"watchword credentials list\" shows all.")
        } catch {
            throw reportRefusal(error)
        }
        output.show(result, "\(params.id.text.shortened) is the default now.")
    }
}
