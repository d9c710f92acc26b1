import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct CredentialsImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "import", "Store the logins of a netrc file or of git's credential store.",
        """
        A netrc file names no scheme. Its logins are stored for https, or for http with --scheme http, at the default port \
        unless the file names one. The file is not changed; remove it when no program reads it any more. An entry that cannot be \
        stored does not stop the import; such entries are listed at the end, and the exit status is 3.
        """,
        examples: "watchword credentials import ~/.netrc",
        "watchword credentials import ~/.git-credentials --keep keyring")

    enum Scheme: String, ExpressibleByArgument, CaseIterable {
        case https, http
    }

    @Argument(help: "The file.", completion: .file())
    var file: String

    @Option(help: "The file's format; by default, derived from its name.")
    var format: CredentialFile.Format?

    @Option(help: "The scheme for the logins of a netrc file.")
    var scheme = Scheme.https

    @Option(help: "Where to store the logins.")
    var keep = CredentialsStoreCommand.Place.session

    @Flag(help: "List the logins in the file, without storing them.")
    var dryRun = false

    @OptionGroup var broker: BrokerStartOptions

    func validate() throws {
        guard format ?? CredentialFile.Format(file: file) != nil else {
            throw ValidationError(
                "cannot derive the format from the name of the file; give --format netrc or --format git")
        }
    }

    func run() throws {
        guard let format = format ?? CredentialFile.Format(file: file) else { return }
        let content = CredentialFile(try Self.content(of: file), format)
        var skipped = content.skipped
        defer { for one in skipped { printError("\(file.shortened), line \(one.line): not stored: \(one.reason)") } }
        guard !content.logins.isEmpty else { throw refusal("no login found in \(file.shortened)") }
        do {
            let connection = dryRun ? nil : try broker.connect()
            connection?.callLimit = Patience.withPeople
            for login in content.logins {
                guard let reason = try store(login, connection) else { continue }
                skipped.append(CredentialFile.Skipped(line: login.line, reason: reason))
            }
            skipped.sort { $0.line < $1.line }
            guard skipped.isEmpty else {
                let all = content.logins.count + content.skipped.count
                throw ExitCode(
                    ExitStatus.incomplete,
                    printing: "stored \(dryRun ? 0 : all - skipped.count) of \(all) logins; not these:")
            }
        } catch ClientFailure.refused(let error) where error.kind == .keyringUnavailable {
            throw refusal(
                "import aborted: \(error.text) (run \"watchword keyring unlock\", or use --keep session)")
        } catch let failure as ClientFailure {
            throw reportRefusal(failure)
        }
    }

    /// Stores a login. Returns the reason if the broker does not accept this login; other failures end the import.
    private func store(_ login: CredentialFile.Login, _ connection: BrokerConnection?) throws -> String? {
        let url = login.site.contains("://") ? login.site : "\(scheme.rawValue)://\(login.site)"
        let site: Site
        do {
            site = try Site(url: url)
        } catch {
            return "no valid host"
        }
        var credential = LoginCredential(
            user: login.user, password: login.password, persistence: keep == .keyring ? .permanent : .forSession)
        credential.path = login.path
        if let connection {
            let call = CredentialStore(pattern: site.pattern, credential: credential)
            if let reason = try Self.refusalOfEntry({ () throws(ClientFailure) in try connection.call(call) }) {
                return reason
            }
        }
        let place = connection == nil ? "not stored (--dry-run)" : "stored in the \(keep.rawValue)"
        print("\(site.origin)\(login.path?.string.shortened ?? "") as \(login.user.string.shortened): \(place)")
        return nil
    }

    /// Returns why the broker does not accept an entry; `nil` if it does.
    private static func refusalOfEntry(_ call: () throws(ClientFailure) -> JSON) throws(ClientFailure) -> String? {
        do throws(ClientFailure) {
            _ = try call()
            return nil
        } catch {
            guard case .refused(let refusal) = error, refusal.kind == .invalidParams else { throw error }
            return refusal.text
        }
    }

    private static let maxBytes = 1 << 20

    /// - Throws: `ExitCode`, after printing an error, if the file cannot be read or belongs to another user.
    private static func content(of file: String) throws -> Secret {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw refusal("cannot read \(file.shortened): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw refusal("cannot read \(file.shortened): not a regular file")
        }
        guard facts.st_uid == geteuid() || facts.st_uid == 0 else {
            throw refusal("cannot read \(file.shortened): it belongs to user \(facts.st_uid)")
        }
        if facts.st_mode & 0o077 != 0 {
            printError("warning: other users can read or change \(file.shortened); run \"chmod 600\" on it")
        }
        var error: Int32 = 0
        let content = Secret(reading: descriptor, capacity: maxBytes + 1, error: &error)
        guard error == 0, content.count <= maxBytes else {
            let problem = error != 0 ? String(cString: strerror(error)) : "larger than \(maxBytes) bytes"
            throw refusal("cannot read \(file.shortened): \(problem)")
        }
        return content
    }
}
