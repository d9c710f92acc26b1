internal import Glibc
internal import WatchwordProtocol

extension SettingsFile {
    /// The path of the file; see `ConfigurationLocation`.
    public static func path(environment: (String) -> String?) -> String? {
        ConfigurationLocation.path(environment: environment)
    }

    /// Loads the settings from a file, or returns all problems of the file. Returns the defaults if the file does not
    /// exist.
    ///
    /// The file must belong to this user or to root, and must not be writable by other users: it controls where passwords are
    /// sent.
    public static func load(_ path: String) -> Result<Settings, InvalidSettings> {
        do throws(LoadFailure) {
            guard let bytes = try contents(path) else { return .success(Settings()) }
            return parse(bytes)
        } catch {
            return .failure(InvalidSettings(problems: [error.problem]))
        }
    }

    private struct LoadFailure: Error {
        let problem: SettingsProblem

        init(_ problem: SettingsProblem) { self.problem = problem }

        init(_ text: String) { problem = SettingsProblem(line: nil, text) }

        init(unreadable path: String, error: Int32) {
            self.init(
                "cannot read \(path): \(String(cString: strerror(error))); make the file readable by you, or remove it")
        }
    }

    /// Reads the file; `nil` if it does not exist.
    private static func contents(_ path: String) throws(LoadFailure) -> [UInt8]? {
        let file: CarefulFile
        // People keep their configurations elsewhere, and link to them. What counts is who can change the file.
        do throws(CarefulFile.Failure) { file = try CarefulFile(path, followsLinks: true) } catch {
            guard case .systemCall(let number) = error else { throw LoadFailure("\(path) \(error.text)") }
            // A dangling symbolic link is an error and not a missing file: its owner expects a file to be used.
            var status = stat()
            if number == ENOENT && lstat(path, &status) != 0 { return nil }
            throw LoadFailure(unreadable: path, error: number)
        }
        let status = file.status
        if let text = fileProblem(mode: status.st_mode, owner: status.st_uid, user: geteuid(), path: path) {
            throw LoadFailure(text)
        }
        return try readAll(file.descriptor, path)
    }

    /// Why the owner or mode of the file is not acceptable; `nil` if both are.
    // guard: configuration-file
    static func fileProblem(mode: mode_t, owner: uid_t, user: uid_t, path: String) -> String? {
        if owner != user && owner != 0 {
            return "\(path) belongs to user \(owner), who could change where passwords are sent; replace it with a "
                + "file of your own"
        }
        if mode & 0o022 != 0 {
            let text = String(mode & 0o7777, radix: 8)
            return "\(path) is writable by other users (mode 0\(text)), who could change where passwords are sent; "
                + "check its contents, then run: chmod go-w '\(path)'"
        }
        return nil
    }

    private static func readAll(_ descriptor: Int32, _ path: String) throws(LoadFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw LoadFailure(unreadable: path, error: errno) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            // Checks the bytes read and not the size from fstat(2), because the file may be growing.
            if bytes.count > largestSize { throw LoadFailure(tooLarge) }
        }
    }
}
