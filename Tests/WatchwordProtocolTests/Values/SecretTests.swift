import TestServers
import Testing
import WatchwordProtocol

struct SecretTests {
    private func secret(_ text: String) -> Secret { Array(text.utf8).withUnsafeBytes { Secret(copying: $0) } }

    @Test(arguments: ["", "x", "correct horse battery staple", "é\u{0}𝄞"])
    func lendsTheBytesThatWereCopied(text: String) {
        let secret = secret(text)
        #expect(secret.withUnsafeBytes { Array($0) } == Array(text.utf8))
        #expect(secret.count == text.utf8.count)
        #expect(secret.isEmpty == text.isEmpty)
    }

    @Test func isFilledInPlaceAndMayBeShorterThanItsBlock() {
        let secret = Secret(capacity: 16) { block in
            #expect(block.count == 16)
            #expect(block.allSatisfy { $0 == 0 })
            block.copyBytes(from: "abc".utf8)
            return 3
        }
        #expect(secret.withUnsafeBytes { Array($0) } == Array("abc".utf8))
        #expect(secret == self.secret("abc"))
    }

    @Test(.startsProcess) func aCountBeyondTheBlockStopsTheProgram() async {
        await #expect(processExitsWith: .failure) { _ = Secret(capacity: 4) { _ in 5 } }
    }

    @Test func anErrorWhileFillingIsRethrown() {
        struct Interrupted: Error {}
        #expect(throws: Interrupted.self) { try Secret(capacity: 4) { _ in throw Interrupted() } }
    }

    @Test func anErrorOfTheReaderIsRethrown() {
        struct Unreadable: Error {}
        let secret = secret("x")
        #expect(throws: Unreadable.self) { try secret.withUnsafeBytes { _ throws(Unreadable) in throw Unreadable() } }
    }

    @Test(arguments: [
        ("", "", true), ("a", "a", true), ("a", "b", false), ("a", "", false), ("a", "a\u{0}", false),
        ("ab", "aa", false),
        ("xb", "ab", false), ("password", "passwore", false), ("\u{E9}", "e\u{301}", false),
    ])
    func equalityIsByteForByte(left: String, right: String, equal: Bool) {
        #expect((secret(left) == secret(right)) == equal)
        #expect((secret(right) == secret(left)) == equal)
    }

    @Test("Rule M6: no way of printing shows a secret")
    func noWayOfPrintingShowsIt() {
        struct Holder { var name = "holder", secret: Secret, list: [Secret] }
        let word = "hunter2hunter2"
        let secret = secret(word)
        let holder = Holder(secret: secret, list: [secret])
        let password = LoginCredential(user: "bob", password: secret)
        var printed = ["\(secret)", String(reflecting: secret), String(describing: secret), secret.debugDescription]
        for value in [secret, holder, password, Credential.login(password)] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            printed += [
                dumped, "\(value)", String(reflecting: value), String(describing: Mirror(reflecting: value).children),
            ]
        }
        for text in printed {
            #expect(!text.contains(word))
            #expect(!text.contains("104, 117, 110"), "not as numbers either")
        }
        #expect("\(secret)" == "(secret)")
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("Rule M1: a secret is wiped when its last copy goes")
    func isWipedWhenTheLastCopyGoes() {
        let search = MemorySearch()
        #expect(search.copies() == 0)
        var first: Secret? = Secret(copying: search.bytes)
        var second = first
        first = nil
        #expect(search.copies() == 1, "copies of the value share one block")
        #expect(second?.count == search.bytes.count)
        second = nil
        #expect(search.copies() == 0)
    }

    @Test func isWipedWhenFillingFails() {
        struct Interrupted: Error {}
        let search = MemorySearch()
        #expect(search.copies() == 0)
        #expect(throws: Interrupted.self) {
            try Secret(capacity: search.bytes.count) { block in
                block.copyMemory(from: search.bytes)
                #expect(search.copies() == 1)
                throw Interrupted()
            }
        }
        #expect(search.copies() == 0)
    }
}
