import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

struct CredentialsStoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Keep a user and a password before a server asks for them.",
        discussion: """
            The password is asked for twice at the terminal, or read from standard input. A broker is started if none runs.

            Examples:
              watchword credentials store https://intranet.example --user bob
              pass h | watchword credentials store https://h --user bob --password-stdin
            """)

    enum Scheme: String, ExpressibleByArgument, CaseIterable {
        case basic, digest

        var method: AuthenticationMethod { self == .basic ? .httpBasic : .httpDigest }
    }

    enum Place: String, ExpressibleByArgument, CaseIterable {
        case session, keyring
    }

    @Argument(help: "A URL like https://host:port; a path does not count.")
    var site: String

    @Option(name: .shortAndLong, help: ArgumentHelp("The user's name, without a password.", valueName: "name"))
    var user: String

    @Option(help: ArgumentHelp("The Windows domain of the user, for NTLM.", valueName: "domain"))
    var domain: String?

    @Option(help: ArgumentHelp("Only for this realm, in place of every one of the site.", valueName: "realm"))
    var realm: String?

    @Option(help: "Only for this scheme, in place of each that the site offers.")
    var scheme: Scheme?

    @Option(help: "Where to keep it.")
    var keep = Place.session

    @Flag(help: "Read the password from standard input: one line.")
    var passwordStdin = false

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: BrokerOptions

    func validate() throws {
        _ = try Site(site)
        _ = try Self.takenUser()
    }

    func run() throws {
        var pattern = try Site(site).pattern
        pattern.realm = realm.map { ExactText($0) }
        pattern.authenticationMethod = scheme?.method
        let interrupt = passwordStdin ? -1 : watchword_interrupt_descriptor()
        do {
            let connection = try broker.connect()
            connection.interruptDescriptor = interrupt
            connection.callLimit = Patience.withPeople
            let user = try Self.takenUser()
            let password =
                try passwordStdin
                ? PasswordEntry.fromStandardInput() : PasswordEntry.atTerminal(for: user, interrupt: interrupt)
            let credential = LoginCredential(
                user: ExactText(user), password: password, domain: domain.map { ExactText($0) },
                persistence: keep == .keyring ? .permanent : .forSession)
            let params = CredentialStoreParams(pattern: pattern, credential: credential)
            let result = try connection.call(.credentialStore, params.json)
            output.show(result, "Kept in the \(keep.rawValue) as \((result["id"]?.string ?? "").shortened).")
        } catch ClientFailure.refused(let error) where error.kind == .keyringUnavailable {
            throw refusal("\(error.text) Nothing was stored. Try: watchword keyring unlock; or give --keep session.")
        } catch let failure as ClientFailure {
            throw reportRefusal(failure)
        }
    }

    /// `SecretArguments` takes the value of `--user` away, as some are used to write a password after it.
    private static func takenUser() throws -> String {
        let name = SecretArguments.taken[.user]?.withUnsafeBytes { bytes in
            bytes.contains(UInt8(ascii: ":")) ? nil : String(decoding: bytes, as: UTF8.self)
        }
        guard let name = name ?? nil, !name.isEmpty else {
            throw ValidationError(
                "--user takes a name alone, without a colon. The password is asked for, or read with --password-stdin.")
        }
        return name
    }
}
