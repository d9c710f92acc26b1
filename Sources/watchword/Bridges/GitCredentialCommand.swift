import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// git's helper protocol (gitcredentials(7), git-credential(1)): what git has for a server, and what it learns, over standard
/// input and output. Also the program `git-credential-watchword`, which git finds by that name.
struct GitCredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "git-credential", abstract: "Be git's credential helper.",
        discussion: """
            Passwords are given out only where the configuration says so: credentials.hand-out names the file of watchword and \
            the hosts. Without that git asks as it always does, and nothing it learns is kept.

            Examples:
              git config --global credential.helper watchword
              git config --global credential.helper "watchword --keep session --quiet"
            """)

    enum Operation: String, ExpressibleByArgument, CaseIterable {
        case get, store, erase, capability
    }

    enum Place: String, ExpressibleByArgument, CaseIterable {
        case session, keyring

        var persistence: Persistence { self == .session ? .forSession : .permanent }
    }

    @Option(help: "Where to keep what git has logged in with.")
    var keep = Place.keyring

    @Flag(help: "Do not say that the configuration gives git nothing for a host.")
    var quiet = false

    @OptionGroup var broker: BrokerOptions

    // Any text: git's later versions may say more, and helpers ignore what they do not know.
    @Argument(help: "What git wants: get, store, erase or capability.")
    var operation: String

    func run() throws {
        guard let operation = Operation(rawValue: operation) else { return }
        if operation == .capability { return print("version 0\ncapability authtype") }
        guard let description = try GitDescription.fromStandardInput() else {
            throw refusal("What git has said is longer than \(GitDescription.longest) bytes, or not text.")
        }
        guard let pattern = description.pattern else { return }
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.callLimit = operation == .get ? Patience.withTheBroker : Patience.withPeople
            try connection.initialize(
                name: "git-credential-watchword", version: WatchwordVersion.current, delivery: nil)
            let helper = GitHelper(connection, description, pattern)
            switch operation {
            case .get: try helper.get()
            case .store: try helper.store(keep.persistence)
            case .erase: try helper.erase()
            case .capability: break
            }
        } catch {
            if quiet, case .refused(let refusal) = error, refusal.kind == .denied { return }
            // git goes on to its next helper, and to asking.
            complain(error.description)
            throw ExitCode(ExitStatus.refused)
        }
    }
}

extension RPCError {
    /// That there is nothing is no error for git; without a keyring there is what the session has.
    fileprivate var isNothing: Bool { kind == .unknownCredential || kind == .keyringUnavailable }
}

/// The three operations.
private struct GitHelper {
    let connection: BrokerConnection
    let description: GitDescription
    let pattern: SpacePattern

    init(_ connection: BrokerConnection, _ description: GitDescription, _ pattern: SpacePattern) {
        (self.connection, self.description, self.pattern) = (connection, description, pattern)
    }

    func get() throws(ClientFailure) {
        if let found = try released(pattern) {
            return write([
                ("username", found["user"]), ("password", found["password"]),
                ("password_expiry_utc", Self.seconds(found["expiresAt"])),
                ("oauth_refresh_token", found["refreshToken"]), ("path", Self.gitPath(found["path"])),
            ])
        }
        guard description.knowsAuthtype else { return }
        var tokens = pattern
        tokens.authenticationMethod = .bearer
        guard let found = try released(tokens) else { return }
        // git forgets these with its process.
        write([
            ("capability[]", "authtype"), ("authtype", "Bearer"), ("ephemeral", "1"), ("credential", found["token"]),
        ])
    }

    /// As git writes times: seconds since 1970.
    private static func seconds(_ time: JSON?) -> JSON? {
        time?.string.flatMap { UTCTime.rfc3339($0) }.map { .string(String($0 / 1000)) }
    }

    /// As git writes paths: without the first slash.
    private static func gitPath(_ path: JSON?) -> JSON? { path?.string.map { .string(String($0.dropFirst())) } }

    /// What git has logged in with; where it gets nothing, it gives nothing either. What it got from here it does not bring back.
    func store(_ persistence: Persistence) throws(ClientFailure) {
        guard let user = description.user, let password = description.password, !description.isEphemeral,
            try isAllowed(user)
        else { return }
        var credential = LoginCredential(user: user, password: password, persistence: persistence)
        credential.path = description.path
        credential.expiresAt = description.expiresAt
        credential.refreshToken = description.refreshToken
        if let known = try released(pattern), isSame(known, credential) { return }
        do throws(ClientFailure) { try store(credential) } catch {
            guard case .refused(let refusal) = error, refusal.kind == .keyringUnavailable else { throw error }
            credential.persistence = .forSession
            try store(credential)
        }
    }

    private func store(_ credential: LoginCredential) throws(ClientFailure) {
        _ = try connection.call(.credentialStore, CredentialStoreParams(pattern: pattern, credential: credential).json)
    }

    /// Only what has been refused: a newer password survives.
    func erase() throws(ClientFailure) {
        guard let user = description.user else { return }
        guard try isAllowed(user) else { return }
        let listed = try connection.call(.credentialList, CredentialListParams(pattern: pattern).json)
        let own = (listed["credentials"]?.elements ?? []).filter { $0["user"]?.exactText == user && isInPlace($0) }
        // The session's come before the keyring's when something is handed out, and hide them.
        let isOfSession = { (credential: JSON) in credential["source"]?.string == CredentialSource.session.rawValue }
        for credential in own.filter(isOfSession) + own.filter({ !isOfSession($0) }) {
            guard let id = credential["id"]?.string.flatMap(CredentialID.init), try isMeant(credential) else {
                continue
            }
            _ = try connection.call(.credentialForget, CredentialForgetParams.id(id).json)
        }
    }

    /// Whether it is good for the repository that git speaks of.
    private func isInPlace(_ credential: JSON) -> Bool {
        guard let path = credential["path"]?.exactText else { return true }
        var scope = LoginCredential(user: "", password: Secret(capacity: 0) { _ in 0 })
        scope.path = path
        return scope.covers(description.path ?? "/")
    }

    /// Whether git brings back what it got from here.
    private func isSame(_ known: JSON, _ credential: LoginCredential) -> Bool {
        known["user"]?.exactText == credential.user && secret(known["password"]) == credential.secret
            && secret(known["refreshToken"]) == credential.refreshToken
            && known["expiresAt"]?.string.flatMap { UTCTime.rfc3339($0) } == credential.expiresAt?.wholeMilliseconds
    }

    private func secret(_ value: JSON?) -> Secret? { value?.withUTF8 { Secret(copying: $0) } }

    /// Whether git means this one by what it says of a log-in: the user may have others there, for other realms or paths.
    private func isMeant(_ credential: JSON) throws(ClientFailure) -> Bool {
        guard let refused = description.password else { return true }
        guard let space = try? SpacePattern(credential["protectionSpace"]),
            let found = try released(space, path: credential["path"]?.exactText),
            found["path"]?.exactText == credential["path"]?.exactText
        else { return false }
        return secret(found["password"]) == refused
    }

    private func isAllowed(_ user: ExactText) throws(ClientFailure) -> Bool {
        do throws(ClientFailure) {
            _ = try connection.call(
                .credentialGet, CredentialGetParams(pattern: pattern, account: Account(user: user)).json)
        } catch {
            guard case .refused(let refusal) = error else { throw error }
            return refusal.isNothing
        }
        return true
    }

    /// `nil` when there is none. That nothing is given out is git's business only where it was meant to be.
    private func released(_ pattern: SpacePattern, path: ExactText? = nil) throws(ClientFailure) -> JSON? {
        let params = CredentialGetParams(
            pattern: pattern, account: description.user.map { Account(user: $0) }, path: path ?? description.path ?? "/"
        )
        do throws(ClientFailure) { return try connection.call(.credentialGet, params.json)["credential"] } catch {
            guard case .refused(let refusal) = error, refusal.isNothing else { throw error }
            return nil
        }
    }

    /// A value with a line end in it would be another member.
    private func write(_ members: [(name: String, value: JSON?)]) {
        for (name, value) in members {
            let line = value?.withUTF8 { bytes in
                Secret(capacity: name.utf8.count + bytes.count + 2) { block in
                    guard !bytes.contains(where: { $0 == 0 || $0 == UInt8(ascii: "\n") }) else { return 0 }
                    var count = 0
                    for byte in [name.utf8.map { $0 }, [UInt8(ascii: "=")]].joined() {
                        block[count] = byte
                        count += 1
                    }
                    for byte in bytes {
                        block[count] = byte
                        count += 1
                    }
                    block[count] = UInt8(ascii: "\n")
                    return count + 1
                }
            }
            line?.withUnsafeBytes { bytes in _ = Glibc.write(STDOUT_FILENO, bytes.baseAddress, bytes.count) }
        }
    }
}
