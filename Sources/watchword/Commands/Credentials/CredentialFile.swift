import ArgumentParser
import WatchwordProtocol

/// The logins in a netrc file (netrc(5), with curl's quoted words) or in git's credential store (git-credential-store(1)).
struct CredentialFile {
    enum Format: String, ExpressibleByArgument, CaseIterable {
        case netrc, git

        /// Derives the format from the usual names of the files; `nil` for other names.
        init?(file: String) {
            let name = file.split(separator: "/").last ?? ""
            switch name {
            case ".netrc", "_netrc", "netrc": self = .netrc
            case ".git-credentials", "git-credentials", "credentials": self = .git
            default: return nil
            }
        }
    }

    struct Login: Equatable {
        /// The site as in a URL. From a netrc file, which has no scheme, the machine name.
        let site: String
        let user: ExactText
        let password: Secret
        /// The path that git stores with `credential.useHttpPath`.
        var path: ExactText?
        let line: Int
    }

    struct Skipped: Equatable {
        let line: Int
        let reason: String
    }

    private(set) var logins: [Login] = []
    private(set) var skipped: [Skipped] = []

    init(_ content: Secret, _ format: Format) {
        content.withUnsafeBytes { bytes in
            switch format {
            case .netrc: readNetrc(Netrc(bytes))
            case .git: readGit(bytes)
            }
        }
    }

    private mutating func readNetrc(_ netrc: Netrc) {
        skipped = netrc.skipped.map { Skipped(line: $0.line, reason: $0.reason) }
        for login in netrc.logins {
            add(Login(site: login.machine, user: login.user, password: login.password, line: login.line))
        }
    }

    /// Adds a login, unless a message to the broker cannot contain its password.
    private mutating func add(_ login: Login) {
        guard login.password.withUnsafeBytes({ String(validating: $0, as: UTF8.self) != nil }) else {
            return skip(login.line, "the password is not UTF-8 text")
        }
        logins.append(login)
    }

    private mutating func skip(_ line: Int, _ reason: String) { skipped.append(Skipped(line: line, reason: reason)) }

    // MARK: git

    private mutating func readGit(_ bytes: UnsafeRawBufferPointer) {
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard !line.isEmpty, line.first != UInt8(ascii: "#") else { continue }
            let (url, userInfo) = URLText.split(Secret(copying: UnsafeRawBufferPointer(rebasing: line)))
            guard let userInfo else {
                skip(index + 1, "no user and password")
                continue
            }
            let halves = userInfo.withUnsafeBytes { text -> (user: Secret?, password: Secret?) in
                let colon = text.firstIndex(of: UInt8(ascii: ":"))
                let password = colon.flatMap { Secret(percentDecoding: text[($0 + 1)...]) }
                return (Secret(percentDecoding: text[..<(colon ?? text.endIndex)]), password)
            }
            let user = halves.user?.withUnsafeBytes { String(validating: $0, as: UTF8.self) } ?? nil
            guard let user, !user.isEmpty, let password = halves.password, !password.isEmpty else {
                skip(index + 1, "no user and password, or invalid percent-encoding")
                continue
            }
            var login = Login(site: url, user: ExactText(user), password: password, line: index + 1)
            login.path = Self.path(of: url)
            add(login)
        }
    }

    /// Returns the path; `nil` for the whole server.
    private static func path(of url: String) -> ExactText? {
        guard let start = url.firstRange(of: "://")?.upperBound, let slash = url[start...].firstIndex(of: "/") else {
            return nil
        }
        let path = url[slash...]
        return path == "/" ? nil : ExactText(path)
    }
}
