import ArgumentParser
import JSONText
import WatchwordProtocol

struct CredentialsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "credentials",
        "List and change stored credentials, in the session and in the keyring. Passwords are never shown.",
        examples: "watchword credentials list", "watchword credentials store https://intranet.example --user bob",
        subcommands: [
            CredentialsListCommand.self, CredentialsStoreCommand.self, CredentialsForgetCommand.self,
            CredentialsDefaultCommand.self, CredentialsImportCommand.self,
        ])
}

extension CredentialID {
    /// Parses the argument ID.
    fileprivate init(argument: String) throws {
        guard let id = CredentialID(argument) else {
            throw ValidationError(
                "ID must be an id like session:7 from the first column of: watchword credentials list")
        }
        self = id
    }
}

extension CompletionKind {
    fileprivate static var credentialID: CompletionKind {
        .listed(by: CredentialList(pattern: nil), "credentials", "id")
    }
}

struct CredentialsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "List all stored credentials, or the credentials of one site.",
        examples: "watchword credentials list", "watchword credentials list https://intranet.example")

    @Argument(help: "A URL like https://host:port; a path is ignored.")
    var site: String?

    @OptionGroup var call: CallOptions

    func validate() throws { _ = try method() }

    func run() throws {
        let heading = ["ID", "TYPE", "USER", "SITE", "REALM", "SCHEME", "STORED", "DEFAULT", "CERTIFICATE"]
        let result = try call.show(
            method(), list: "credentials", none: "No stored credentials.", heading: heading, row: Self.row)
        if !call.output.json { KeyringText.reportAbsence(result["keyring"]) }
    }

    private func method() throws -> CredentialList { CredentialList(pattern: try site.map { try Site($0).pattern }) }

    static func row(_ credential: JSON) -> [String] {
        let isLogin = ["password", "token"].contains(credential["type"]?.string)
        let account = Account(user: credential["user"]?.exactText ?? "", domain: credential["domain"]?.exactText)
        return [
            id(credential["id"]?.string ?? ""), credential.shown("type"), account.text.string.shortened,
            SpaceText.site(credential) + credential.shown("path"),
            isLogin ? SpaceText.realm(credential) ?? "(any)" : "",
            isLogin ? SpaceText.scheme(credential) ?? "(any)" : "",
            storage(credential).shortened, credential["isDefault"]?.boolean == true ? "yes" : "",
            certificate(credential),
        ]
    }

    /// Returns the key hash of a trusted server, or the location of a client certificate.
    private static func certificate(_ credential: JSON) -> String {
        switch credential["type"]?.string {
        case "trust": "key SHA-256 \(credential.shown("spkiSha256"))"
        case "certificate": credential["certificate"]?.string?.shortened ?? "(PEM)"
        default: ""
        }
    }

    private static func storage(_ credential: JSON) -> String {
        if credential["type"]?.string == "trust", credential["persistence"]?.string == "permanent" { return "forever" }
        let source = credential["source"]?.string ?? ""
        return credential["expiresAt"]?.string.map { "\(source) until \($0)" } ?? source
    }

    /// Returns the id unshortened, so that it can be copied.
    private static func id(_ text: String) -> String {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? text : text.shortened
    }
}

struct CredentialsForgetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "forget", "Remove one credential, or all of a site, from the session and the keyring.",
        examples: "watchword credentials forget session:7", "watchword credentials forget trust:2",
        "watchword credentials forget --site https://intranet.example --realm Staff")

    @Argument(help: "An id from the first column of: watchword credentials list", completion: .credentialID)
    var id: String?

    @Option(help: ArgumentHelp("Remove all credentials of a site: a URL like https://host:port.", valueName: "site"))
    var site: String?

    @Option(help: ArgumentHelp("With --site: remove only logins for this realm.", valueName: "realm"))
    var realm: String?

    @OptionGroup var call: CallOptions

    func validate() throws { _ = try method() }

    func run() throws {
        try call.show(method(), within: Patience.withPeople) { result in
            "\(counted(result["removed"]?.integer ?? 0, "credential")) forgotten"
        }
        // Only a site may have further credentials, in a locked keyring; an id identifies a single credential.
        if site != nil { KeyringText.reportAbsence(try call.broker.call(KeyringStatus())) }
    }

    private func method() throws -> CredentialForget {
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

struct CredentialsDefaultCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "default", "Set a site's default user.", examples: "watchword credentials default session:7")

    @Argument(help: "An id from the first column of: watchword credentials list", completion: .credentialID)
    var id: String

    @OptionGroup var call: CallOptions

    func validate() throws {
        switch try CredentialID(argument: id) {
        case .session, .keyring: break
        case .trust, .certificate: throw ValidationError("ID must be the id of a password or a token")
        }
    }

    func run() throws {
        let method = CredentialSetDefault(id: try CredentialID(argument: id))
        try call.show(method, within: Patience.withPeople) { _ in "\(method.id.text.shortened) is now the default" }
    }
}
