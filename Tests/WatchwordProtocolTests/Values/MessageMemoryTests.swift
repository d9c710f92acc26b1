import JSONText
import TestServers
import Testing
import WatchwordProtocol

/// Copies of a password that remain after a message is parsed or written.
struct MessageMemoryTests {
    private let search = MemorySearch()

    /// Returns an answer with the searched bytes as its password.
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

    @Test("Rules M2 and J1: a JSON tree is wiped when it is freed")
    func aTreeIsWipedWhenItIsFreed() throws {
        do {
            let json = try answerText.withUnsafeBytes(parse)
            #expect(search.copies() == 1)
            #expect(json["credential"]?["password"]?.withUTF8 { $0.count } == search.bytes.count)
        }
        #expect(search.copies() == 0)
    }

    /// The test runs in its own process, in which no other code has installed the wiping allocator.
    @Test(.startsProcess) func parsingAloneWipesWhatItFrees() async {
        await #expect(processExitsWith: .success) {
            try MessageMemoryTests().aTreeIsWipedWhenItIsFreed()
        }
    }

    @Test func aRefusedTextLeavesNoCopies() {
        #expect(throws: JSONFailure.self) {
            try answerText.withUnsafeBytes { try parse(UnsafeRawBufferPointer(rebasing: $0.dropLast())) }
        }
        #expect(search.copies() == 0)
    }

    @Test("Rule M2: a parsed answer holds the only copy of its password")
    func anAnswerThatWasReadHoldsTheOnlyCopy() throws {
        do {
            let answer = try parsedAnswer()
            #expect(search.copies() == 1)
            withExtendedLifetime(answer) {}
        }
        #expect(search.copies() == 0)
    }

    @Test("Rule M4: an answer that is written in place leaves no copy")
    func anAnswerThatIsWrittenInPlaceLeavesNoCopy() throws {
        do {
            let answer = try parsedAnswer()
            var secret: Secret? = answer.json.withSerialized { Secret(copying: $0) }
            #expect(search.copies() == 2, "one copy in the answer, and one in the written text")
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
