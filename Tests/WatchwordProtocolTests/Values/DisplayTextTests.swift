import Testing
import WatchwordProtocol

struct DisplayTextTests {
    @Test(arguments: [
        ("plain", "plain"), ("a\u{1B}[2Jb\n", "a\u{FFFD}[2Jb\u{FFFD}"), ("\u{7F}\u{9B}", "\u{FFFD}\u{FFFD}"),
        ("é𝄞", "é𝄞"), ("a\u{202E}b\u{2066}\u{200F}", "a\u{FFFD}b\u{FFFD}\u{FFFD}"),
        ("a\u{2028}b\u{2029}", "a\u{FFFD}b\u{FFFD}"), ("a\u{A0}b\u{3000}c", "a b c"),
        ("b\u{3164}\u{2800}\u{115F}\u{E000}", "b\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
        (
            "e" + String(repeating: "\u{301}", count: 5),
            "e" + String(repeating: "\u{301}", count: 3) + "\u{FFFD}\u{FFFD}"
        ),
    ])
    func textFromOutsideIsMadeSafeForATerminal(text: String, shown: String) {
        #expect(Array(text.shortened.unicodeScalars) == Array(shown.unicodeScalars))
    }

    @Test func longTextIsShortenedInTheMiddle() {
        #expect(String(repeating: "x", count: 80).shortened == String(repeating: "x", count: 80))
        let path = "exe:/opt/" + String(repeating: "x/", count: 60) + "evil"
        #expect(path.shortened(to: 30) == "exe:/opt/x/x/x/x/x/x…x/x/x/evil")
        #expect(path.shortened.unicodeScalars.count == 81)
    }
}
