import ArgumentParser
import JSONText
import WatchwordProtocol

struct CredentialsForgetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Remove a credential, or all of a site, from the session and the keyring.",
        discussion: """
            Examples:
              watchword credentials forget session:7
              watchword credentials forget trust:2
              watchword credentials forget --site https://intranet.example --realm Staff
            """)

    @Argument(help: "One credential: an id out of the first column of the list.")
    var id: String?

    @Option(help: ArgumentHelp("All of a site: a URL like https://host:port.", valueName: "site"))
    var site: String?

    @Option(help: ArgumentHelp("With --site: those of this realm only.", valueName: "realm"))
    var realm: String?

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try params() }

    func run() throws {
        let result = try broker.call(.credentialForget, params().json, within: Patience.withPeople)
        let count = result["removed"]?.integer ?? 0
        output.show(result, count == 1 ? "1 credential is forgotten." : "\(count) credentials are forgotten.")
        // An id names the one that is meant; a site may have more in a keyring that is locked.
        if site != nil { KeyringText.noteAbsence(try broker.call(.keyringStatus)) }
    }

    private func params() throws -> CredentialForgetParams {
        switch (id, site) {
        case (let id?, nil) where realm == nil:
            return .id(try CredentialID(argument: id))
        case (nil, let site?):
            var pattern = try Site(site).pattern
            pattern.realm = realm.map { ExactText($0) }
            return .pattern(pattern)
        default:
            throw ValidationError("Name either one ID, or --site SITE, with or without --realm.")
        }
    }
}
