import ArgumentParser
import JSONText
import WatchwordProtocol

struct CredentialsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List all stored credentials, or the credentials of one site.",
        discussion: """
            Examples:
              watchword credentials list
              watchword credentials list https://intranet.example
            """)

    @Argument(help: "A URL like https://host:port; a path is ignored.")
    var site: String?

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try site.map { try Site($0) } }

    func run() throws {
        let result = try broker.call(CredentialList(pattern: try site.map { try Site($0).pattern }))
        if output.json { return print(result.line) }
        let rows = (result["credentials"]?.elements ?? []).map(Self.row)
        print(rows.isEmpty ? "No stored credentials." : TextTable.text([Self.heading] + rows))
        KeyringText.reportAbsence(result["keyring"])
    }

    private static let heading = ["ID", "TYPE", "USER", "SITE", "REALM", "SCHEME", "STORED", "DEFAULT", "CERTIFICATE"]

    private static func row(_ credential: JSON) -> [String] {
        let isLogin = ["password", "token"].contains(credential["type"]?.string)
        return [
            id(credential["id"]?.string ?? ""), (credential["type"]?.string ?? "").shortened,
            user(credential).shortened, SpaceText.site(credential) + (credential["path"]?.string ?? "").shortened,
            isLogin ? SpaceText.realm(credential) ?? "(any)" : "",
            isLogin ? SpaceText.scheme(credential) ?? "(any)" : "",
            storage(credential).shortened, credential["isDefault"]?.boolean == true ? "yes" : "",
            certificate(credential),
        ]
    }

    /// Returns the key hash of a trusted server, or the location of a client certificate.
    private static func certificate(_ credential: JSON) -> String {
        switch credential["type"]?.string {
        case "trust": "key SHA-256 \((credential["spkiSha256"]?.string ?? "").shortened)"
        case "certificate": credential["certificate"]?.string?.shortened ?? "(PEM)"
        default: ""
        }
    }

    private static func storage(_ credential: JSON) -> String {
        if credential["type"]?.string == "trust", credential["persistence"]?.string == "permanent" { return "forever" }
        let source = credential["source"]?.string ?? ""
        return credential["expiresAt"]?.string.map { "\(source) until \($0)" } ?? source
    }

    private static func user(_ credential: JSON) -> String {
        Account(user: credential["user"]?.exactText ?? "", domain: credential["domain"]?.exactText).text.string
    }

    /// Returns the id unshortened, so that it can be copied.
    private static func id(_ text: String) -> String {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? text : text.shortened
    }
}
