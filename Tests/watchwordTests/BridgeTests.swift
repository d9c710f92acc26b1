import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct BridgeTests {
    private func secret(_ text: String) -> Secret {
        var text = text
        return text.withUTF8 { Secret(copying: UnsafeRawBufferPointer($0)) }
    }

    @Test func aDescriptionFromGitIsRead() throws {
        let text =
            "protocol=https\nhost=git.example:8443\npath=a/b\nusername=b=b\npassword=p=w\ncapability[]=authtype\n"
        let said = try #require(GitDescription(secret(text + "password_expiry_utc=1\nephemeral=1\n\nhost=later\n")))
        #expect(said.pattern == SpacePattern(scheme: "https", host: "git.example", port: 8443))
        #expect(said.path == "/a/b" && said.user == "b=b" && said.password == secret("p=w"))
        #expect(said.knowsAuthtype && said.expiresAt == .seconds(1) && said.isEphemeral)
    }

    @Test(arguments: [
        "protocol=ssh\nhost=h\n", "protocol=https\n", "protocol=https\nhost=\n", "protocol=http\nhost=a/b\n", "\n",
    ])
    func aDescriptionWithoutAnHTTPServerHasNoPattern(text: String) throws {
        #expect(try #require(GitDescription(secret(text))).pattern == nil)
    }

    @Test(arguments: ["no mark\n", "=\u{0}\nx\n"])
    func malformedTextIsRefused(text: String) { #expect(GitDescription(secret(text)) == nil) }

    @Test(
        arguments: [
            ("Username for 'https://git.example': ", nil, true, "git.example", 443, nil),
            ("Password for 'https://git.example': ", "bob", false, "git.example", 443, "bob"),
            ("Password for 'http://127.0.0.1:8080': ", "b%40b", false, "127.0.0.1", 8080, "b@b"),
        ] as [(String, String?, Bool, String, Int, String?)])
    func promptsOfGitAreRead(
        question: String, userInfo: String?, wantsUser: Bool, host: String, port: Int, user: String?
    ) throws {
        let asked = try #require(PromptTarget(question, userInfo: userInfo.map(secret)))
        #expect(asked.wantsUser == wantsUser && asked.user?.string == user)
        #expect(asked.pattern.host.string == host && asked.pattern.port == port)
    }

    @Test(arguments: [
        "Password for 'https://git.example#.example.net': ", "Password for 'https://git.example?.example.net': ",
        "Password for 'https://git.example' of another user: ",
        "Enter passphrase for key '/home/bob/.ssh/id': ", "Password: ", "Password for 'ssh://host': ", "Password for '",
        "",
        "Username for 'https://': ",
    ])
    func otherPromptsAreNotForGit(question: String) { #expect(PromptTarget(question, userInfo: nil) == nil) }

    @Test(arguments: ["bob:pw", "%ff", "%4"])
    func userInformationWithAPasswordOrInvalidEncodingIsRefused(userInfo: String) {
        #expect(PromptTarget("Password for 'https://git.example': ", userInfo: secret(userInfo)) == nil)
    }

    /// `wwwauth[]` contains the server's challenge in the server's encoding.
    @Test func unknownFieldsNeedNotBeUTF8() throws {
        let bytes =
            Array("wwwauth[]=Basic realm=\"caf".utf8) + [0xE9] + Array("\"\nprotocol=https\nhost=git.example\n".utf8)
        let said = bytes.withUnsafeBytes { GitDescription(Secret(copying: $0)) }
        #expect(try #require(said).pattern?.host == "git.example")
    }
}

/// The prompt of another program, as `watchword askpass` shows it.
@Suite struct AskpassPromptTests {
    @Test func theFingerprintAndTheLastLineAreShownWhole() {
        let host = String(repeating: "a", count: 63) + "." + String(repeating: "b", count: 63) + ".evil.example"
        let lines = [
            "The authenticity of host '\(host) (2001:db8::1)' can't be established.",
            "ED25519 key fingerprint is SHA256:uNiVztksCsDhcc0u9e8BrrJXt3R1sUN4Vk0yLZz1vvc.",
            "This key is not known by any other names.",
            "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
        ]
        #expect(PromptText.beforeCursor(lines.joined(separator: "\n")) == lines.joined(separator: "\n"))
    }

    @Test func controlCharactersAreReplacedAndLongTextIsShortened() {
        #expect(PromptText.beforeCursor("a\u{1B}[2J\r\nb\u{202E}:") == "a\u{FFFD}[2J\nb\u{FFFD}: ")
        #expect(PromptText.beforeCursor("") == "Password: ")
        let endless = PromptText.beforeCursor("first\n" + String(repeating: "\n", count: 100_000) + "last? ")
        #expect(endless.hasPrefix("first\n") && endless.hasSuffix("\nlast? ") && endless.count < 100)
    }
}

@Suite struct TextTableTests {
    @Test func aVeryWideCellShiftsItsOwnLineOnly() {
        let wide = String(repeating: "x", count: 253)
        #expect(TextTable.text([["A", "B"], [wide, "1"], ["no", "2"]]) == "A   B\n\(wide)  1\nno  2")
    }
}

/// The conventions by which other programs call askpass.
@Suite struct AskpassConventionTests {
    private static let host = "Are you sure you want to continue connecting (yes/no/[fingerprint])? "

    @Test(
        arguments: [
            ("Password: ", nil, .secret, false), ("Username for 'https://host': ", nil, .text, false),
            (host, nil, .confirmation, true), ("Allow use of the key?", "confirm", .confirmation, false),
            (host, "confirm", .confirmation, false), ("Touch the token", "none", .information, false),
        ] as [(String, String?, ProgramPrompt.Kind, Bool)])
    func theKindComesFromTheTextAndFromSSH(
        text: String, hint: String?, kind: ProgramPrompt.Kind, printsRefusal: Bool
    ) {
        let prompt = AskpassPrompt(text) { $0 == "SSH_ASKPASS_PROMPT" ? hint : nil }
        #expect(prompt.kind == kind && prompt.printsRefusal == printsRefusal && !prompt.prefersAgent)
    }

    @Test(arguments: [("force", true), ("prefer", true), ("never", false), ("", false)])
    func sshCanRequireAWindow(value: String, prefersAgent: Bool) {
        let prompt = AskpassPrompt("Password: ") { $0 == "SSH_ASKPASS_REQUIRE" ? value : nil }
        #expect(prompt.prefersAgent == prefersAgent)
    }

    @Test func theQuestionNamesTheCallerAndIsSafeToShow() {
        let question = AskpassPrompt("a\u{1B}[2J\nb") { _ in nil }.question.prompt
        #expect(question.text == "a\u{FFFD}[2J\nb" && question.program == CallingProgram.name())
        #expect(AskpassPrompt("") { _ in nil }.question.prompt.text == "Password:")
        let endless = String(repeating: "\u{1F511}", count: 2000) + "\n"
        let longest = AskpassPrompt(String(repeating: endless, count: 100)) { _ in nil }.question.prompt.text
        #expect(longest.utf8.count <= Limits.promptTextBytes && longest.utf8.count > Limits.promptTextBytes / 2)
    }
}
