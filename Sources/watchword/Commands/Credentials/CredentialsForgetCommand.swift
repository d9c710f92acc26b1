import ArgumentParser
import JSONText
import WatchwordProtocol

struct CredentialsForgetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Remove one credential, or all of a site, from the session and the keyring.",
        discussion: """
            Examples:
              watchword credentials forget session:7
              watchword credentials forget trust:2
              watchword credentials forget --site https://intranet.example --realm Staff
            """)

    @Argument(
        help: "An id from the first column of: watchword credentials list",
        completion: .listed(by: CredentialList(pattern: nil), "credentials", "id"))
    var id: String?

    @Option(help: ArgumentHelp("Remove all credentials of a site: a URL like https://host:port.", valueName: "site"))
    var site: String?

    @Option(help: ArgumentHelp("With --site: remove only logins for this realm.", valueName: "realm"))
    var realm: String?

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try params() }

    func run() throws {
        let result = try broker.call(params(), within: Patience.withPeople)
        let count = result["removed"]?.integer ?? 0
        output.show(result, "\(counted(count, "credential")) forgotten")
        // Only a site may have further credentials, in a locked keyring; an id identifies a single credential.
        if site != nil { KeyringText.reportAbsence(try broker.call(KeyringStatus())) }
    }

    private func params() throws -> CredentialForget {
        switch (id, site) {
        case (let id?, nil) where realm == nil:
            return .id(try CredentialID(argument: id))
        case (nil, let site?):
            var pattern = try Site(site).pattern
            pattern.realm = realm.map { ExactText($0) }
            return .pattern(pattern)
        default:
            throw ValidationError("give either one ID, or --site SITE with or without --realm")
        }
    }
}
