import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct CredentialsImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Keep the logins of a netrc file or of git's credential store.",
        discussion: """
            A netrc file names no scheme and no port: its logins are kept for https and port 443, unless --scheme says http \
            (port 80). The file stays as it is; remove it when nothing reads it any more.

            Examples:
              watchword credentials import ~/.netrc
              watchword credentials import ~/.git-credentials --keep keyring
            """)

    enum Scheme: String, ExpressibleByArgument, CaseIterable {
        case https, http
    }

    @Argument(help: "The file.", completion: .file())
    var file: String

    @Option(help: "What the file is; as its name says, unless given.")
    var format: CredentialFile.Format?

    @Option(help: "For which scheme the logins of a netrc file are.")
    var scheme = Scheme.https

    @Option(help: "Where to keep them.")
    var keep = CredentialsStoreCommand.Place.session

    @Flag(help: "Only show which logins are in the file.")
    var dryRun = false

    @OptionGroup var broker: BrokerOptions

    func validate() throws {
        guard format ?? CredentialFile.Format(file: file) != nil else {
            throw ValidationError("The name of the file does not say what it is: give --format netrc or --format git.")
        }
    }

    func run() throws {
        guard let format = format ?? CredentialFile.Format(file: file) else { return }
        let content = CredentialFile(try Self.content(of: file), format)
        for one in content.skipped { complain("\(file.shortened), line \(one.line): not kept: \(one.reason)") }
        guard !content.logins.isEmpty else { throw refusal("There is no login in \(file.shortened).") }
        do {
            let connection = dryRun ? nil : try broker.connect()
            connection?.callLimit = Patience.withPeople
            for login in content.logins { try keep(login, connection) }
        } catch ClientFailure.refused(let error) where error.kind == .keyringUnavailable {
            throw refusal("\(error.text) Try: watchword keyring unlock; or give --keep session.")
        } catch let failure as ClientFailure {
            throw reportRefusal(failure)
        }
    }

    private func keep(_ login: CredentialFile.Login, _ connection: BrokerConnection?) throws {
        let url = login.site.contains("://") ? login.site : "\(scheme.rawValue)://\(login.site)"
        let site: Site
        do {
            site = try Site(url: url)
        } catch {
            return complain("\(file.shortened), line \(login.line): not kept: it is for no host that can be used")
        }
        var credential = LoginCredential(
            user: login.user, password: login.password, persistence: keep == .keyring ? .permanent : .forSession)
        credential.path = login.path
        _ = try connection?.call(
            .credentialStore, CredentialStoreParams(pattern: site.pattern, credential: credential).json)
        let place = connection == nil ? "not kept (--dry-run)" : "kept in the \(keep.rawValue)"
        print("\(site.origin)\(login.path?.string.shortened ?? "") as \(login.user.string.shortened): \(place)")
    }

    private static let maxBytes = 1 << 20

    /// - Throws: `ExitCode`, after a message, where the file cannot be read, or is another user's.
    private static func content(of file: String) throws -> Secret {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw refusal("\(file.shortened) cannot be read: \(String(cString: strerror(errno))).")
        }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw refusal("\(file.shortened) is no regular file.")
        }
        guard facts.st_uid == geteuid() || facts.st_uid == 0 else {
            throw refusal("\(file.shortened) belongs to user \(facts.st_uid): what it says is not believed.")
        }
        if facts.st_mode & 0o077 != 0 {
            complain("other users may read or change \(file.shortened); chmod 600 keeps them from it")
        }
        var problem: String?
        let content = Secret(capacity: maxBytes + 1) { block in
            var count = 0
            while count < block.count {
                let received = read(descriptor, block.baseAddress?.advanced(by: count), block.count - count)
                if received < 0 && errno == EINTR { continue }
                if received < 0 { problem = "cannot be read: \(String(cString: strerror(errno)))" }
                guard received > 0 else { break }
                count += received
            }
            return count
        }
        if content.count > maxBytes { problem = "is larger than \(maxBytes) bytes" }
        if let problem { throw refusal("\(file.shortened) \(problem).") }
        return content
    }
}
