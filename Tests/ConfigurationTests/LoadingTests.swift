import Glibc
import TestServers
import Testing
import WatchwordProtocol

@testable import Configuration

@Suite final class LoadingTests {
    private let folder: String
    private var path: String { "\(folder)/config.toml" }

    init() throws {
        var template = Array("/tmp/watchword-test.XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        unlink(path)
        rmdir(path)
        rmdir(folder)
    }

    private func write(_ text: String, mode: mode_t = 0o600) throws {
        let file = try #require(fopen(path, "w"))
        #expect(fputs(text, file) >= 0)
        #expect(fclose(file) == 0)
        #expect(chmod(path, mode) == 0)
    }

    private func problem() -> SettingsProblem? {
        guard case .failure(let invalid) = SettingsFile.load(path), invalid.problems.count == 1 else { return nil }
        return invalid.problems[0]
    }

    @Test func readsAFile() throws {
        try write("[keyring]\nenabled = false\n", mode: 0o644)
        #expect(try SettingsFile.load(path).get().keyringEnabled == false)
        try write("[keyring]\nenabled = 0\n", mode: 0o400)
        #expect(problem()?.line == 2)
    }

    @Test func aMissingFileGivesTheDefaults() throws {
        #expect(try SettingsFile.load(path).get() == Settings())
        #expect(try SettingsFile.load("\(folder)/no/such/folder").get() == Settings())
    }

    @Test func aDanglingSymbolicLinkIsAProblem() throws {
        #expect(symlink("\(folder)/nothing", path) == 0)
        #expect(problem()?.text.contains("config.toml: No such file") == true)
    }

    @Test(arguments: [0o620, 0o602, 0o666, 0o664] as [mode_t])
    func refusesAFileThatOthersCanWriteTo(mode: mode_t) throws {
        try write("", mode: mode)
        let problem = try #require(self.problem())
        #expect(problem.line == nil && problem.text.hasSuffix("chmod go-w '\(path)'"))
        #expect(problem.text.contains("(mode 0\(String(mode, radix: 8)))"))
    }

    /// A file of another kind must not fill the log.
    @Test func listsOnlySomeProblems() throws {
        try write((0..<1000).map { "key\($0) = 1\n" }.joined())
        guard case .failure(let invalid) = SettingsFile.load(path) else {
            Issue.record("the file was accepted")
            return
        }
        let lines = invalid.description.split(separator: "\n")
        #expect(invalid.problems.count == 1000 && lines.count == 51 && lines.last == "and 950 more problems")
    }

    @Test func refusesAFileOfAnotherUser() {
        func problem(_ mode: mode_t, owner: uid_t) -> String? {
            SettingsFile.fileProblem(mode: S_IFREG | mode, owner: owner, user: 1000, path: "/x")
        }
        #expect(problem(0o644, owner: 1000) == nil)
        #expect(problem(0o644, owner: 0) == nil)
        #expect(problem(0o644, owner: 1001)?.contains("belongs to user 1001") == true)
        #expect(problem(0o664, owner: 0)?.contains("writable by other users") == true)
    }

    @Test func refusesAPathThatIsNotAFile() {
        #expect(mkdir(path, 0o700) == 0)
        #expect(problem()?.text.contains("is not a regular file") == true)
    }

    @Test(.timed, .timeLimit(.minutes(1))) func doesNotWaitForANamedPipe() {
        #expect(mkfifo(path, 0o600) == 0)
        #expect(problem()?.text.contains("is not a regular file") == true)
    }

    @Test func reportsWhyAFileCannotBeRead() {
        // A file in place of a directory: permissions would not stop root, and tests may run as root.
        guard case .failure(let invalid) = SettingsFile.load("/dev/null/config.toml") else {
            Issue.record("a file that does not exist was read")
            return
        }
        #expect(invalid.problems[0].text.contains("cannot read /dev/null/config.toml: Not a directory;"))
    }

    @Test func refusesAFileThatIsTooLarge() throws {
        try write(String(repeating: "#", count: SettingsFile.largestSize))
        #expect(try SettingsFile.load(path).get() == Settings())
        try write(String(repeating: "#", count: SettingsFile.largestSize + 1))
        #expect(problem() == SettingsFile.tooLarge)
    }

    @Test(arguments: [
        (["XDG_CONFIG_HOME": "/c", "HOME": "/h"], "/c/watchword/config.toml"),
        (["HOME": "/h"], "/h/.config/watchword/config.toml"),
        (["XDG_CONFIG_HOME": "", "HOME": "/h"], "/h/.config/watchword/config.toml"),
        (["XDG_CONFIG_HOME": "c", "HOME": "/h"], "/h/.config/watchword/config.toml"), (["HOME": "h"], nil), ([:], nil),
    ])
    func knowsWhereTheFileLies(environment: [String: String], path: String?) {
        #expect(ConfigurationLocation.path { environment[$0] } == path)
    }
}
