import Testing
import WatchwordProtocol

@testable import watchword

/// The contents of netrc files and of git's credential store.
@Suite struct CredentialFileTests {
    private func secret(_ text: String) -> Secret {
        var text = text
        return text.withUTF8 { Secret(copying: UnsafeRawBufferPointer($0)) }
    }

    private func read(_ text: String, _ format: CredentialFile.Format) -> CredentialFile {
        CredentialFile(secret(text), format)
    }

    private func found(_ text: String, _ format: CredentialFile.Format) -> [String] {
        read(text, format).logins.map { login in
            let password = login.password.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            return "\(login.line) \(login.site) \(login.user) \(password)"
        }
    }

    @Test func netrc() {
        let text = """
            # a comment with machine x login y password z
            machine h login bob password pw
            machine two
              login "b o\\"b" password "p\\\\w\\tx" account a
            macdef init
            machine inside login a password b

            machine three password first login last
            """
        #expect(
            found(text, .netrc) == ["2 h bob pw", "3 two b o\"b p\\w\tx", "8 three last first"])
    }

    @Test func netrcWithoutRequiredFields() {
        let file = read("machine h login bob\nmachine i password x\ndefault login a password b\nfoo\nmachine", .netrc)
        #expect(file.logins.isEmpty)
        #expect(
            file.skipped.map { "\($0.line) \($0.reason)" } == [
                "1 no password", "2 no login", "3 default: a login for all hosts is not stored", "5 no host",
            ])
    }

    @Test func theImportReportsWhyAnEntryIsInvalid() {
        let file = read(
            "x machine g\nlogin bob password p\nq\nmachine h login bob password\nmachine i login a login b password c",
            .netrc)
        #expect(file.logins.isEmpty)
        #expect(
            file.skipped.map { "\($0.line) \($0.reason)" } == [
                "1 unknown word", "3 unknown word",
                "4 missing value, or value that needs quotation marks", "5 a second login or password",
            ])
    }

    @Test func git() {
        let text = """
            https://bob:p%40w%3a@h:8443\r

            #x
            https://carol:pw@i/repo.git
            https://eve@j
            http://a:x%zz@k
            nothing
            """
        let file = read(text, .git)
        #expect(found(text, .git) == ["1 https://h:8443 bob p@w:", "4 https://i/repo.git carol pw"])
        #expect(file.logins.map(\.path) == [nil, "/repo.git"])
        #expect(file.skipped.map(\.line) == [5, 6, 7])
    }

    @Test func theFileNameDeterminesTheFormat() {
        #expect(CredentialFile.Format(file: "/home/bob/.netrc") == .netrc)
        #expect(CredentialFile.Format(file: ".git-credentials") == .git)
        #expect(CredentialFile.Format(file: "passwords.txt") == nil)
    }
}
