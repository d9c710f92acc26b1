import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

struct CredentialsStoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "store", "Store a user and a password before a server asks for them.",
        """
        Asks for the password twice at the terminal, or reads it from standard input. Starts a broker if none is running.
        """,
        examples: "watchword credentials store https://intranet.example --user bob",
        "pass h | watchword credentials store https://h --user bob --password-stdin")

    enum Scheme: String, ExpressibleByArgument, CaseIterable {
        case basic, digest

        var method: AuthenticationMethod { self == .basic ? .httpBasic : .httpDigest }
    }

    enum Place: String, ExpressibleByArgument, CaseIterable {
        case session, keyring
    }

    @Argument(help: "A URL like https://host:port; a path is ignored.")
    var site: String

    @Option(name: .shortAndLong, help: ArgumentHelp("The user's name, without a password.", valueName: "name"))
    var user: String

    @Option(help: ArgumentHelp("The Windows domain of the user, for NTLM.", valueName: "domain"))
    var domain: String?

    @Option(help: ArgumentHelp("Restrict the credential to this realm.", valueName: "realm"))
    var realm: String?

    @Option(help: "Restrict the credential to this scheme.")
    var scheme: Scheme?

    @Option(help: "Where to store the credential.")
    var keep = Place.session

    @Flag(help: "Read the password from standard input: one line.")
    var passwordStdin = false

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: BrokerStartOptions

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
            let result = try connection.call(CredentialStore(pattern: pattern, credential: credential))
            output.show(result, "Stored in the \(keep.rawValue) as \((result["id"]?.string ?? "").shortened).")
        } catch ClientFailure.refused(let error) where error.kind == .keyringUnavailable {
            throw refusal(
                "nothing was stored: \(error.text) (run \"watchword keyring unlock\", or use --keep session)")
        } catch let failure as ClientFailure {
            throw reportRefusal(failure)
        }
    }

    /// The value of `--user`, from `SecretArguments`: it is removed from the arguments, because it may contain a password by
    /// mistake.
    private static func takenUser() throws -> String {
        let name = SecretArguments.taken[.user]?.withUnsafeBytes { bytes in
            bytes.contains(UInt8(ascii: ":")) ? nil : String(decoding: bytes, as: UTF8.self)
        }
        guard let name = name ?? nil, !name.isEmpty else {
            throw ValidationError(
                "--user takes only a name, without a colon; enter the password at the prompt, or use --password-stdin")
        }
        return name
    }
}
