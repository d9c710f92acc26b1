import Testing
import WatchwordProtocol

/// The parser of netrc files. The results for each keyword are tested with `watchword credentials import`.
@Suite struct NetrcTests {
    private func read(_ text: String, where isWanted: @escaping (String) -> Bool) -> Netrc {
        var text = text
        return text.withUTF8 { Netrc(UnsafeRawBufferPointer($0), where: isWanted) }
    }

    @Test func onlyWantedMachinesAreStored() {
        let netrc = read("machine a login bob password x machine b login carol password y") { $0 == "b" }
        #expect(netrc.logins.map(\.user) == ["carol"])
        #expect(netrc.skipped.isEmpty)
    }

    /// A word uses the memory of its own length, not of the rest of the file.
    @Test func aFileOfTheLargestSizeIsReadAtOnce() {
        let line = "machine h login bob password \"p\\\"w\\\\\"\n"
        let count = (1 << 20) / line.utf8.count
        var left = count
        let netrc = read(String(repeating: line, count: count)) { _ in
            left -= 1
            return left == 0
        }
        #expect(netrc.logins.map(\.line) == [count])
        #expect(netrc.logins.first?.password.withUnsafeBytes { $0.elementsEqual("p\"w\\".utf8) } == true)
    }

    private func found(_ text: String) -> [String] {
        read(text) { _ in true }.logins.map { login in
            let password = login.password.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            return "\(login.machine) \(login.user) \(password)"
        }
    }

    /// The following text is not a part of the password either: it may belong to another host.
    @Test(arguments: [
        "machine h login bob password \"", "machine h login bob password \"x\\", "machine h login bob password \"x",
        "machine h login bob password \"x\\\nmachine i login carol password y",
        "machine h login bob password \"x\nmachine i login carol password y",
        "machine h login bob password \"x\nmachine i login carol password \"y\"",
    ])
    func anOpenQuotationMarkVoidsTheEntry(text: String) {
        #expect(found(text) == (text.contains("carol") ? ["i carol y"] : []))
    }

    /// A replacement character would make another user of it.
    @Test func textThatIsNotUTF8VoidsTheEntry() {
        var bytes = Array("machine a login b".utf8) + [0xFC] + Array(" password S\nmachine h".utf8) + [0xE9]
        bytes +=
            Array(" login bob password S\nmachine b login b\u{FC} password S\nmachine c login c password ".utf8) + [
                0xFF
            ]
        let netrc = bytes.withUnsafeBytes { Netrc($0) }
        #expect(netrc.logins.map(\.user) == ["b\u{FC}", "c"])
        #expect(
            netrc.skipped.map { "\($0.line) \($0.reason)" } == [
                "1 the user is not UTF-8 text", "2 the host is not UTF-8 text",
            ])
    }

    /// A malformed entry contains no login, and does not change the entries around it.
    @Test(arguments: [
        ("machine a login bob password\nmachine b login carol password S", ["b carol S"]),
        ("machine a login\nmachine b login carol password S", ["b carol S"]),
        ("machine\nmachine b login carol password S", ["b carol S"]),
        ("machine a login bob account\nmachine b login carol password S", ["b carol S"]),
        ("machine a login bob password\ndefault login carol password S", []),
        ("machine a login bob password macdef\nmachine b login carol password S\n\nlogin x password y", []),
        ("machine a login password password S\nmachine b login carol password T", ["b carol T"]),
        ("machine h login machine password login\nmachine b login carol password S", ["b carol S"]),
        ("machine a login bob password x password y", []), ("machine a login bob login carol password y", []),
        ("machine a login bob password two words\nmachine b login carol password S", ["b carol S"]),
        ("machine a login bob pasword x password y", []), ("machine a login bob \"password\" x password y", []),
        ("machine a login bob password \"x\"y", []),
    ])
    func aMalformedEntryIsVoid(text: String, logins: [String]) { #expect(found(text) == logins) }

    @Test func aQuotedValueMayBeAnyWord() {
        #expect(found("machine h login \"machine\" password \"login\"") == ["h machine login"])
    }

    @Test(arguments: [
        ("machine a # was: machine b\nlogin bob\npassword S", ["a bob S"]),
        ("machine a login bob #password x\npassword S # machine b login carol password T", ["a bob S"]),
        ("machine a login bob password #S", ["a bob #S"]), ("machine a login \"#b\" password S", ["a #b S"]),
        ("machine a account # was: machine b\nlogin bob password S", []),
        ("machine a account #was: machine b\nlogin bob password S", []),
        ("machine # was: machine b\nlogin bob password S", []),
        ("machine a password # was: machine b password T\nlogin bob password S", []),
    ])
    func aCommentInMidLineOpensNoEntry(text: String, logins: [String]) { #expect(found(text) == logins) }
}
