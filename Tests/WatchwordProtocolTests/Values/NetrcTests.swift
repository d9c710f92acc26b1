import Testing
import WatchwordProtocol

/// The parser of netrc files; what it makes of each word is tested with `watchword credentials import`.
@Suite struct NetrcTests {
    private func read(_ text: String, where isWanted: @escaping (String) -> Bool) -> Netrc {
        var text = text
        return text.withUTF8 { Netrc(UnsafeRawBufferPointer($0), where: isWanted) }
    }

    @Test func onlyWantedMachinesAreKept() {
        let netrc = read("machine a login bob password x machine b login carol password y") { $0 == "b" }
        #expect(netrc.logins.map(\.user) == ["carol"])
        #expect(netrc.skipped.isEmpty)
    }

    /// Each word takes the memory of a word, and not of what is left of the file.
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

    @Test(arguments: [
        "machine h login bob password \"", "machine h login bob password \"x\\", "machine h login bob password \"x",
    ])
    func anOpenQuotationMarkEndsWithTheFile(text: String) {
        let found = read(text) { _ in true }.logins.map(\.password.count)
        #expect(found == (text.hasSuffix("\"") ? [] : [text.hasSuffix("x") ? 1 : 2]))
    }
}
