import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// A git credential helper (gitcredentials(7), git-credential(1)). It reads a description of a server and a login from standard
/// input, and writes a login to standard output. Also installed as `git-credential-watchword`, which git finds by that name.
struct GitCredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "git-credential", "Act as a credential helper for git.",
        """
        Passwords are released only if the configuration lists the path of watchword and the host in credentials.hand-out. \
        Otherwise git prompts as usual, and the logins it reports are not stored.
        """,
        examples: "git config --global credential.helper watchword",
        "git config --global credential.helper \"watchword --keep session --quiet\"")

    enum Operation: String, ExpressibleByArgument, CaseIterable {
        case get, store, erase, capability
    }

    enum Place: String, ExpressibleByArgument, CaseIterable {
        case session, keyring

        var persistence: Persistence { self == .session ? .forSession : .permanent }
    }

    @Option(help: "Where to store the login that git reports.")
    var keep = Place.keyring

    @Flag(help: "Do not report hosts whose credentials the configuration does not release to git.")
    var quiet = false

    @Option(
        help: ArgumentHelp(
            "Give a token as the password of this user to git before 2.46, which cannot send tokens.", valueName: "user"
        ))
    var tokenUser: String?

    @OptionGroup var broker: BrokerStartOptions

    // A plain string, because later versions of git may use further operations, and helpers must ignore unknown ones.
    @Argument(help: "The operation: get, store, erase or capability.")
    var operation: String

    func run() throws {
        guard let operation = Operation(rawValue: operation) else { return }
        if operation == .capability { return print("version 0\ncapability authtype") }
        guard let description = try GitDescription.fromStandardInput() else {
            throw refusal("invalid input from git: longer than \(GitDescription.longest) bytes, or not text")
        }
        guard let pattern = description.pattern else { return }
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.callLimit = operation == .get ? Patience.withTheBroker : Patience.withPeople
            try connection.initialize(
                name: "git-credential-watchword", version: WatchwordVersion.current, delivery: nil)
            let helper = GitHelper(
                connection: connection, description: description, pattern: pattern,
                tokenUser: tokenUser.map { ExactText($0) })
            switch operation {
            case .get: try helper.get()
            case .store: try helper.store(keep.persistence)
            case .erase: try helper.erase()
            case .capability: break
            }
        } catch {
            if quiet, case .refused(let refusal) = error, refusal.kind == .denied { return }
            // git continues with its next helper, and then prompts.
            throw ExitCode(ExitStatus.refused, printing: error.description)
        }
    }
}

extension RPCError {
    /// Whether the error means that no login is stored, which is not an error for git. An unusable keyring counts as
    /// empty, because the session may still have logins.
    fileprivate var isNothing: Bool { kind == .unknownCredential || kind == .keyringUnavailable }
}

/// The operations `get`, `store` and `erase`.
private struct GitHelper {
    let connection: BrokerConnection
    let description: GitDescription
    let pattern: SpacePattern
    /// The user whose password is a token.
    let tokenUser: ExactText?

    /// Whether git's login is, or can be, a token as a password, which is neither stored nor removed as one.
    private var mayBeToken: Bool { tokenUser != nil && (description.user ?? tokenUser) == tokenUser }

    func get() throws(ClientFailure) {
        if let found = try released(pattern) {
            return write([
                ("username", found["user"]), ("password", found["password"]),
                ("password_expiry_utc", Self.seconds(found["expiresAt"])),
                ("oauth_refresh_token", found["refreshToken"]), ("path", Self.gitPath(found["path"])),
            ])
        }
        guard description.knowsAuthtype || mayBeToken else { return }
        var tokens = pattern
        tokens.authenticationMethod = .bearer
        guard let found = try released(tokens, of: description.knowsAuthtype ? description.user : nil) else { return }
        guard description.knowsAuthtype else {
            return write([
                ("username", tokenUser.map { .string($0.string) }), ("password", found["token"]),
                ("password_expiry_utc", Self.seconds(found["expiresAt"])),
            ])
        }
        // git does not store an ephemeral login beyond its process.
        write([
            ("capability[]", "authtype"), ("authtype", "Bearer"), ("ephemeral", "1"), ("credential", found["token"]),
            ("password_expiry_utc", Self.seconds(found["expiresAt"])),
        ])
    }

    /// Converts a time to git's form: seconds since 1970.
    private static func seconds(_ time: JSON?) -> JSON? {
        time?.string.flatMap { UTCTime.rfc3339($0) }.map { .string(String($0 / 1000)) }
    }

    /// Converts a path to git's form: without the first slash.
    private static func gitPath(_ path: JSON?) -> JSON? { path?.string.map { .string(String($0.dropFirst())) } }

    /// Stores the login that git used successfully, unless it is already stored. Without a keyring it is stored in the session.
    /// Does nothing if the configuration does not release the login to git.
    func store(_ persistence: Persistence) throws(ClientFailure) {
        guard let user = description.user, let password = description.password, !description.isEphemeral, !mayBeToken,
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
        try connection.call(CredentialStore(pattern: pattern, credential: credential))
    }

    /// Removes the logins that match the description: all of a server, if it names no user (gitcredentials(7)). A login with
    /// another password than the description, which is newer than the refused one, remains.
    func erase() throws(ClientFailure) {
        if let token = description.token ?? (mayBeToken ? description.password : nil) { return try replace(token) }
        guard description.user == nil || !mayBeToken else { return }
        let listed = try connection.call(CredentialList(pattern: pattern))
        var own = (listed["credentials"]?.elements ?? []).filter { isOfUser($0) && isInPlace($0) }
        for user in Set(own.compactMap { $0["user"]?.exactText }) where try !isAllowed(user) {
            own.removeAll { $0["user"]?.exactText == user }
        }
        // Session credentials come first, because on release they take precedence over the keyring's and hide them.
        let isOfSession = { (credential: JSON) in credential["source"]?.string == CredentialSource.session.rawValue }
        for credential in own.filter(isOfSession) + own.filter({ !isOfSession($0) }) {
            guard let id = credential["id"]?.string.flatMap(CredentialID.init), try matches(credential) else {
                continue
            }
            try connection.call(CredentialForget.id(id))
        }
    }

    /// Lets the broker obtain another token for the next request. The login remains.
    private func replace(_ token: Secret) throws(ClientFailure) {
        var tokens = pattern
        tokens.authenticationMethod = .bearer
        do throws(ClientFailure) {
            try connection.call(
                CredentialGet(pattern: tokens, account: nil, path: description.path ?? "/", refusedToken: token))
        } catch {
            guard case .refused(let refusal) = error, refusal.isNothing else { throw error }
        }
    }

    private func isOfUser(_ credential: JSON) -> Bool {
        guard let user = credential["user"]?.exactText, user != tokenUser else { return false }
        return description.user == nil || description.user == user
    }

    /// Whether the credential is valid for the path of git's repository. A description without a path is about all. One with a
    /// path is about a login for the whole server only if it contains the refused password.
    private func isInPlace(_ credential: JSON) -> Bool {
        guard description.path != nil else { return true }
        guard let path = credential["path"]?.exactText else { return description.password != nil }
        var scope = LoginCredential(user: "", password: Secret(capacity: 0) { _ in 0 })
        scope.path = path
        return scope.covers(description.path ?? "/")
    }

    /// Whether git reports a login that it got from this helper, unchanged.
    private func isSame(_ known: JSON, _ credential: LoginCredential) -> Bool {
        known["user"]?.exactText == credential.user && secret(known["password"]) == credential.secret
            && secret(known["refreshToken"]) == credential.refreshToken
            && known["expiresAt"]?.string.flatMap { UTCTime.rfc3339($0) } == credential.expiresAt?.wholeMilliseconds
    }

    private func secret(_ value: JSON?) -> Secret? { value?.withUTF8 { Secret(copying: $0) } }

    /// Whether git's description is about this login, and not about another login of the user for another realm or path.
    private func matches(_ credential: JSON) throws(ClientFailure) -> Bool {
        guard let refused = description.password else { return true }
        guard let space = try? SpacePattern(Members(credential["protectionSpace"])),
            let found = try released(space, of: credential["user"]?.exactText, path: credential["path"]?.exactText),
            found["path"]?.exactText == credential["path"]?.exactText
        else { return false }
        return secret(found["password"]) == refused
    }

    /// Whether git may change the logins of `user`: the broker releases the stored one to git, or has none.
    private func isAllowed(_ user: ExactText) throws(ClientFailure) -> Bool {
        do throws(ClientFailure) {
            try connection.call(CredentialGet(pattern: pattern, account: Account(user: user)))
        } catch {
            guard case .refused(let refusal) = error else { throw error }
            return refusal.isNothing
        }
        return true
    }

    /// Returns the stored login; `nil` if there is none. Throws if the broker does not release it.
    private func released(_ pattern: SpacePattern, path: ExactText? = nil) throws(ClientFailure) -> JSON? {
        try released(pattern, of: description.user, path: path)
    }

    private func released(
        _ pattern: SpacePattern, of user: ExactText?, path: ExactText? = nil
    ) throws(ClientFailure) -> JSON? {
        let params = CredentialGet(
            pattern: pattern, account: user.map { Account(user: $0) }, path: path ?? description.path ?? "/")
        do throws(ClientFailure) { return try connection.call(params)["credential"] } catch {
            guard case .refused(let refusal) = error, refusal.isNothing else { throw error }
            return nil
        }
    }

    /// Writes the members, one per line. A value with a line end is omitted, because the rest would be another member.
    private func write(_ members: [(name: String, value: JSON?)]) {
        for (name, value) in members {
            guard let value = value?.withUTF8({ Secret(copying: $0) }),
                !value.withUnsafeBytes({ $0.contains { $0 == 0 || $0 == UInt8(ascii: "\n") } })
            else { continue }
            let line = Secret(joining: [.text("\(name)="), .secret(value), .text("\n")])
            line.withUnsafeBytes { bytes in _ = Glibc.write(STDOUT_FILENO, bytes.baseAddress, bytes.count) }
        }
    }
}
