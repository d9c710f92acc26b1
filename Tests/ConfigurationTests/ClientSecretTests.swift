import Glibc
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Configuration

/// The files with the secrets of clients, `client-secret-file`.
@Suite final class ClientSecretTests {
    private let folder: String
    private var path: String { "\(folder)/secret" }

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

    private func write(_ bytes: [UInt8], mode: mode_t = 0o600) throws {
        let file = try #require(fopen(path, "w"))
        #expect(fwrite(bytes, 1, bytes.count, file) == bytes.count)
        #expect(fclose(file) == 0 && chmod(path, mode) == 0)
    }

    private func loaded(_ path: String, home: String? = nil) throws -> Settings {
        let text = """
            [oauth."https://a.example/v1"]
            client-id = "c"
            issuer = "https://login.example"
            client-secret-file = "\(path)"

            [oauth."https://a.example"]
            client-id = "c"
            """
        var found = try #require(settings(text), "\(problems(text))")
        found.readClientSecrets(home: home)
        return found
    }

    private func secret(_ text: String) -> Secret {
        Array(text.utf8).withUnsafeBytes { Secret(copying: $0) }
    }

    private func expectProblem(_ text: String, path: String? = nil, home: String? = nil) throws {
        let found = try loaded(path ?? self.path, home: home)
        #expect(found.oauthRules.map(\.isUsable) == [false, true] && found.oauthRules[0].clientSecret == nil)
        #expect(
            found.fileProblems.map(\.line) == [4]
                && found.fileProblems.map(\.key) == ["oauth.\"https://a.example/v1\".client-secret-file"])
        #expect(found.fileProblems.first?.text.contains(text) == true, "\(found.fileProblems)")
        #expect(!found.fileProblems.contains { "\($0)".contains("hunter2") })
    }

    @Test(arguments: [
        ("hunter2", "hunter2"), ("hunter2\n", "hunter2"), (" a b~", " a b~"),
        (String(repeating: "x", count: 4096), String(repeating: "x", count: 4096)),
        (String(repeating: "x", count: 4095) + "\n", String(repeating: "x", count: 4095)),
    ])
    func readsASecret(content: String, expected: String) throws {
        for mode in [0o600, 0o400, 0o700] as [mode_t] {
            try write(Array(content.utf8), mode: mode)
            let found = try loaded(path)
            #expect(found.fileProblems == [] && found.oauthRules.map(\.isUsable) == [true, true])
            #expect(found.oauthRules[0].clientSecret == secret(expected) && found.oauthRules[1].clientSecret == nil)
            #expect(found.withoutSecrets.oauthRules.allSatisfy { $0.clientSecret == nil })
            #expect(!"\(found)".contains("hunter2"))
        }
    }

    @Test func findsAFileBelowTheHome() throws {
        try write(Array("hunter2".utf8))
        #expect(try loaded("~/secret", home: folder).oauthRules[0].clientSecret == secret("hunter2"))
        try expectProblem("HOME is not set", path: "~/secret")
        try expectProblem("HOME is not set", path: "~/secret", home: "home")
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o610, 0o666] as [mode_t])
    func refusesAFileThatOthersCanRead(mode: mode_t) throws {
        try write(Array("hunter2".utf8), mode: mode)
        try expectProblem(
            "other users have access to \(path) (mode 0\(String(mode, radix: 8))); run: chmod 600 '\(path)'")
    }

    @Test func refusesASymbolicLink() throws {
        try write(Array("hunter2".utf8))
        let link = "\(folder)/link"
        symlink(path, link)
        defer { unlink(link) }
        try expectProblem("is a symbolic link", path: link)
    }

    @Test func refusesAFileOfAnotherUser() {
        func problem(_ mode: mode_t, owner: uid_t) -> String? {
            ClientSecretFile.problem(mode: S_IFREG | mode, owner: owner, user: 1000, path: "/x")
        }
        #expect(problem(0o600, owner: 1000) == nil && problem(0o400, owner: 0) == nil)
        #expect(problem(0o600, owner: 1001)?.contains("belongs to user 1001") == true)
        #expect(problem(0o640, owner: 0)?.contains("other users have access") == true)
    }

    @Test(arguments: ["", "\n"]) func refusesAnEmptyFile(content: String) throws {
        try write(Array(content.utf8))
        try expectProblem("is empty")
    }

    @Test(arguments: ["hunter2\r\n", "hunter2\n\n", "\nhunter2", "hunter2\0", "hunter2\t", "hünter2", "hunter2\u{7F}"])
    func refusesWhatIsNoSecret(content: String) throws {
        try write(Array(content.utf8))
        try expectProblem("a character that a client secret cannot have")
    }

    @Test func refusesAFileThatIsTooLarge() throws {
        for size in [4097, 100_000] {
            try write([UInt8](repeating: 0x78, count: size))
            try expectProblem("is larger than 4096 bytes")
        }
    }

    @Test func reportsAMissingFile() throws {
        try expectProblem("cannot read \(path): No such file or directory; create it")
    }

    @Test(.timeLimit(.minutes(1))) func refusesWhatIsNotAFile() throws {
        #expect(mkfifo(path, 0o600) == 0)
        try expectProblem("is not a regular file")
        unlink(path)
        #expect(mkdir(path, 0o700) == 0)
        try expectProblem("is not a regular file")
    }
}
