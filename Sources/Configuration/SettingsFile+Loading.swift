internal import Glibc
internal import WatchwordProtocol

extension SettingsFile {
    /// Where the file lies; see `ConfigurationLocation`.
    public static func path(environment: (String) -> String?) -> String? {
        ConfigurationLocation.path(environment: environment)
    }

    /// The settings that a file gives, or everything that is wrong with it. A file that is missing gives the defaults.
    ///
    /// Who can write to the file decides where passwords go, so it has to belong to this user (or to root), and nobody else
    /// may write to it.
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
                "The file \(path) cannot be read: \(String(cString: strerror(error))). Make it readable for yourself, or "
                    + "remove it.")
        }
    }

    /// `nil` when there is no file.
    private static func contents(_ path: String) throws(LoadFailure) -> [UInt8]? {
        // Without O_NONBLOCK a named pipe would be waited for.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let error = errno
            // A link to nothing is not a missing file: its owner expects it to be in force.
            var status = stat()
            if error == ENOENT && lstat(path, &status) != 0 { return nil }
            throw LoadFailure(unreadable: path, error: error)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw LoadFailure(unreadable: path, error: errno) }
        if let text = objection(mode: status.st_mode, owner: status.st_uid, user: geteuid(), path: path) {
            throw LoadFailure(text)
        }
        return try readAll(descriptor, path)
    }

    /// `nil` when everything is as it should be.
    static func objection(mode: mode_t, owner: uid_t, user: uid_t, path: String) -> String? {
        if mode & S_IFMT != S_IFREG { return "\(path) is not a file. Move it away, and put a file in its place." }
        if owner != user && owner != 0 {
            return "The file \(path) belongs to user \(owner), who could change where passwords go. Replace it with a "
                + "file of your own."
        }
        if mode & 0o022 != 0 {
            let text = String(mode & 0o7777, radix: 8)
            return "Others can write to the file \(path) (mode 0\(text)), and so change where passwords go. "
                + "Look whether it is as you left it, then run: chmod go-w '\(path)'"
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
            // By what was read and not by what fstat(2) says: the file may be growing.
            if bytes.count > largestSize { throw LoadFailure(tooLarge) }
        }
    }
}
