import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct SecretArgumentsTests {
    /// Returns the remaining arguments, the secrets that were taken, and the texts that other users can still read.
    private func take(_ arguments: [String]) -> (texts: [String], taken: SecretArguments.Taken, left: [String]) {
        let blocks = arguments.map { text in
            let block = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
            block.copyBytes(from: text.utf8)
            return block
        }
        defer { for block in blocks { block.deallocate() } }
        let (texts, taken) = SecretArguments.take(from: blocks)
        return (texts, taken, blocks.map { String(decoding: $0, as: UTF8.self) })
    }

    private static let ways: [(arguments: [String], option: SecretArguments.Option)] = [
        (["-u", "a:secret"], .user), (["-ua:secret"], .user), (["-Lu", "a:secret"], .user), (["-sLua:secret"], .user),
        (["--user", "a:secret"], .user), (["--user=a:secret"], .user),
        (["-U", "a:secret"], .proxyUser), (["--proxy-user=a:secret"], .proxyUser),
        (["-x", "a:secret@h:1"], .proxy), (["--proxy", "http://a:secret@h"], .proxy),
        (["-xa:secret@h:1"], .proxy), (["-E", "f:secret"], .certificate), (["-Ef:secret"], .certificate),
        (["--cert=f:secret"], .certificate), (["--key", "pkcs11:?pin-value=secret"], .key),
        (["--pass", "secret"], .passphrase), (["--pass=secret"], .passphrase),
        (["--oauth2-bearer", "secret"], .bearerToken), (["--oauth2-bearer=secret"], .bearerToken),
    ]

    @Test(arguments: ways.indices)
    func takesEveryFormOfEveryOption(index: Int) throws {
        let way = Self.ways[index]
        let found = take(["fetch"] + way.arguments + ["http://h/"])
        let value = try #require(found.taken[way.option])
        #expect(value.withUnsafeBytes { $0.firstRange(of: "secret".utf8) != nil })
        #expect(!found.texts.joined().contains("secret") && !found.left.joined().contains("secret"))
        #expect(found.texts.first == "fetch" && found.texts.last == "http://h/" && found.left.last == "http://h/")
        #expect(SecretArguments.Option.allCases.filter { found.taken[$0] != nil } == [way.option])
    }

    @Test func takesUserInformationOutOfTheURL() {
        let found = take(["fetch", "-L", "https://a:secret@h/x"])
        #expect(found.texts == ["fetch", "-L", "https://h/x"] && found.taken.userInfos.map(\.url) == ["https://h/x"])
        #expect(!found.left.joined().contains("secret"))
    }

    @Test(arguments: [["--url", "https://a:secret@h/"], ["--url=https://a:secret@h/"]])
    func takesUserInformationOutOfTheOption(arguments: [String]) {
        let found = take(["fetch"] + arguments)
        #expect(found.taken.userInfo("https://h/") != nil && !found.left.joined().contains("secret"))
        #expect(found.texts.last?.hasSuffix("https://h/") == true && !found.texts.joined().contains("secret"))
    }

    @Test(arguments: [["-e", "https://a:secret@h/"], ["--referer=https://a:secret@h/"]])
    func aRefererHasNoLogin(arguments: [String]) {
        let found = take(arguments + ["https://h/"])
        #expect(found.taken.userInfos.isEmpty && !found.left.joined().contains("secret"))
    }

    /// Data to be sent may look like an option or a URL.
    @Test(arguments: ["-d", "--data-raw", "-H", "-F", "--form-string", "-T", "-o", "-Ld"])
    func valuesOfDataOptionsAreUnchanged(option: String) {
        for value in ["http://a:b@h/", "-u", "--user", "-x"] {
            #expect(take(["fetch", option, value, "http://h/"]).texts == ["fetch", option, value, "http://h/"])
        }
    }

    /// A value joined to its option letter may end with a letter that is an option itself.
    @Test(arguments: ["-ubobu", "-ubobx", "-Efilex", "-xhostE", "-da=u", "-Fname=u", "-XPUTU", "-LoutputE"])
    func aJoinedValueEndsItsOption(argument: String) {
        #expect(take([argument, "http://h/"]).texts.last == "http://h/")
    }

    @Test func leavesTheRestAsItIs() {
        let arguments = ["fetch", "-L", "-X", "PUT", "-d", "@f", "--keep", "none", "-o", "x", "--", "http://h/-u"]
        #expect(take(arguments).texts == arguments && take(arguments).left == arguments)
    }

    private static let hidden: [(arguments: [String], texts: [String])] = [
        (["-H", "A: secret"], ["-H", "A: secret"]), (["-HA: secret"], ["-H", "A: secret"]),
        (["-sLH", "A: secret"], ["-sLH", "A: secret"]), (["-sLHA: secret"], ["-sLH", "A: secret"]),
        (["--header", "A: secret"], ["--header", "A: secret"]), (["--header=A: secret"], ["--header=A: secret"]),
        (["-d", "secret"], ["-d", "secret"]), (["-dsecret"], ["-d", "secret"]), (["-d", "--"], ["-d", "--"]),
        (["--data", "secret"], ["--data", "secret"]), (["--data-ascii=secret"], ["--data-ascii=secret"]),
        (["--data-binary", "secret"], ["--data-binary", "secret"]),
        (["--data-raw", "@secret"], ["--data-raw", "@secret"]),
        (["--data-urlencode", "a=secret"], ["--data-urlencode", "a=secret"]),
        (["-F", "a=secret"], ["-F", "a=secret"]), (["--form-string=a=secret"], ["--form-string=a=secret"]),
        (["-b", "a=secret"], ["-b", "a=secret"]), (["--cookie=a=secret"], ["--cookie=a=secret"]),
        (["--proxy-header", "A: secret"], ["--proxy-header", "A: secret"]),
        (["-d", "-u", "-u", "a:secret"], ["-d", "-u", "-u", "taken"]),
        (["-u", "--", "-H", "A: secret"], ["-u", "taken", "-H", "A: secret"]),
        (["https://h/x?token=secret"], ["https://h/x?token=secret"]), (["h/x?token=secret"], ["h/x?token=secret"]),
        (["--url", "h?secret"], ["--url", "h?secret"]), (["--url=h?secret"], ["--url=h?secret"]),
        (["--", "-h?secret"], ["--", "-h?secret"]), (["--json", "{secret}"], ["--json", "{secret}"]),
        (["--json=[secret]"], ["--json=[secret]"]),
        (["--", "https://h/?secret"], ["--", "https://h/?secret"]),
    ]

    @Test(arguments: hidden.indices)
    func secretDataIsRemovedFromTheArgumentListAndStillSent(index: Int) {
        let way = Self.hidden[index]
        let found = take(["fetch"] + way.arguments + ["http://h/"])
        #expect(found.texts == ["fetch"] + way.texts + ["http://h/"])
        #expect(!found.left.joined().contains("secret") && found.left.last == "http://h/")
        #expect(found.left.map(\.utf8.count) == (["fetch"] + way.arguments + ["http://h/"]).map(\.utf8.count))
    }

    @Test(arguments: [
        ["-d", "@file"], ["--data-binary=@file"], ["-H", "@file"], ["-T", "file"], ["-o", "file?x"], ["-X", "PUT"],
        ["--", "-d", "word"], ["-X", "a?b"],
    ])
    func argumentsWithoutSecretsAreUnchanged(arguments: [String]) {
        #expect(take(arguments).left == arguments && take(arguments).texts.joined() == arguments.joined())
    }

    /// The parser later reports that the argument cannot be sent.
    @Test func argumentsThatAreNotUTF8AreUnchanged() {
        let bytes: [UInt8] = [0x61, 0xFF]
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
        defer { block.deallocate() }
        block.copyBytes(from: bytes)
        let option = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
        defer { option.deallocate() }
        option.copyBytes(from: "-d".utf8)
        _ = SecretArguments.take(from: [option, block])
        #expect(Array(block) == bytes)
    }
}
