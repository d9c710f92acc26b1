import JSONText
import Testing
import WatchwordProtocol

/// A password on its way through a message, and what it leaves behind.
struct MessageMemoryTests {
    private let search = MemorySearch()

    /// An answer with the bytes looked for as its password.
    private var answerText: Secret {
        let start = Array(#"{"action":"credential","credential":{"type":"password","user":"bob","password":""#.utf8)
        let end = Array(#""}}"#.utf8)
        return Secret(capacity: start.count + search.bytes.count + end.count) { block in
            block.copyBytes(from: start)
            UnsafeMutableRawBufferPointer(rebasing: block[start.count...]).copyMemory(from: search.bytes)
            UnsafeMutableRawBufferPointer(rebasing: block.suffix(end.count)).copyBytes(from: end)
            return block.count
        }
    }

    private func parse(_ text: UnsafeRawBufferPointer) throws -> JSON {
        try JSON.parse(text, limits: JSONLimits(depth: 8, values: 100))
    }

    private func parsedAnswer() throws -> ChallengeAnswer {
        try ChallengeAnswer(answerText.withUnsafeBytes(parse))
    }

    @Test func aTreeIsWipedWhenItGoes() throws {
        do {
            let json = try answerText.withUnsafeBytes(parse)
            #expect(search.copies() == 1)
            #expect(json["credential"]?["password"]?.withUTF8 { $0.count } == search.bytes.count)
        }
        #expect(search.copies() == 0)
    }

    /// In a process of its own, where nothing else has brought the wiping allocator in.
    @Test func parsingAloneWipesWhatItFrees() async {
        await #expect(processExitsWith: .success) {
            try MessageMemoryTests().aTreeIsWipedWhenItGoes()
        }
    }

    @Test func aTextThatIsRefusedLeavesNothing() {
        #expect(throws: JSONFailure.self) {
            try answerText.withUnsafeBytes { try parse(UnsafeRawBufferPointer(rebasing: $0.dropLast())) }
        }
        #expect(search.copies() == 0)
    }

    @Test func anAnswerThatWasReadHoldsTheOnlyCopy() throws {
        do {
            let answer = try parsedAnswer()
            #expect(search.copies() == 1)
            withExtendedLifetime(answer) {}
        }
        #expect(search.copies() == 0)
    }

    @Test func anAnswerThatIsWrittenInPlaceLeavesNoCopy() throws {
        do {
            let answer = try parsedAnswer()
            var secret: Secret? = answer.json.withSerialized { Secret(copying: $0) }
            #expect(search.copies() == 2, "the answer's and the one just written")
            #expect(secret != nil)
            secret = nil
            withExtendedLifetime(answer) {}
        }
        #expect(search.copies() == 0)
    }
}

extension JSON {
    /// Lends the text, written in place and wiped afterwards.
    fileprivate func withSerialized<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let text = Secret(capacity: serializedCount) { block in
            write(block)
            return block.count
        }
        return text.withUnsafeBytes(body)
    }
}
