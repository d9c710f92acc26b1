import JSONText
import Testing
import WatchwordProtocol

/// The bytes of a header section as text, and back (RFC 9110 section 5.5).
struct HeaderBytesTests {
    private func text(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { String(header: $0) } }

    private static let examples: [[UInt8]] = [
        [], Array("a\tb".utf8), Array("Büro €😀".utf8), [0xFC], [0x42, 0xFC, 0x72, 0x6F], [0xC3], [0xC3, 0x28],
        [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0x80, 0xBF, 0xC0, 0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80],
        [0xF4, 0x90, 0x80, 0x80], [0xC3, 0xBC, 0xFC, 0xC3, 0xBC], [0xF4, 0x8F, 0xBF, 0xA9], [0xF4, 0x8F, 0xBE, 0x80],
        [0xF4, 0x8F, 0xBD, 0xBF], Array(0x80...0xFF), [0xE9, 0xF4, 0x8F, 0xBF, 0xA9, 0xF4],
    ]

    @Test("Rule X2: received bytes are kept", arguments: examples)
    func receivedBytesAreKept(bytes: [UInt8]) {
        #expect(text(bytes).headerBytes == bytes)
    }

    @Test("Rule X2: other bytes are another text")
    func otherBytesAreAnotherText() {
        #expect(Set(Self.examples.map { ExactText(text($0)) }).count == Self.examples.count)
        // In UTF-8, this is the text of the byte E9.
        #expect(text([0xF4, 0x8F, 0xBF, 0xA9]) != text([0xE9]))
    }

    @Test func textInUTF8IsItself() {
        for known in ["", "Staff", "Büro €😀"] {
            #expect(text(Array(known.utf8)) == known)
            #expect(known.readable == known && known.headerBytes == Array(known.utf8))
        }
    }

    @Test(
        arguments: [
            ([0x42, 0xFC, 0x72, 0x6F], "Büro"), ([0xC3, 0xBC, 0xFC], "Ã¼ü"), ([0xF4, 0x8F, 0xBF, 0xA9], "\u{10FFE9}"),
            ([0x9B], "\u{9B}"),
        ] as [([UInt8], String)])
    func peopleAndClientsReadISO88591(bytes: [UInt8], readable: String) {
        #expect(text(bytes).readable == readable)
        #expect([HeaderField("A", text(bytes))].json.elements?.first?.elements?.last?.string == readable)
    }

    @Test("Rule X2: a block keeps the bytes, and is written like its fields", arguments: examples)
    func aBlockIsWrittenLikeItsFields(bytes: [UInt8]) {
        let fields = [HeaderField("A", text(bytes)), HeaderField("B", "\"b\"")]
        let block = HeaderBlock(fields)
        let result = FetchRunResult(
            fetchID: "f1", status: 200, url: "u", httpVersion: "1.1", headers: block, body: .handle, bodyBytes: nil,
            authentication: nil, exchanges: 1, totalTime: .zero, challengeTime: .zero)
        #expect(Array(block) == fields && block.json == fields.json)
        #expect(result.json["headers"] == fields.json && result.json["rawBytes"] == fields.rawBytes())
    }

    @Test func aMarkedTextIsShownAsItIsRead() {
        #expect(text([0x42, 0xFC, 0x72, 0x6F]).shortened == "Büro")
        #expect(text([0x61, 0x9B, 0x62]).shortened == "a\u{FFFD}b")
    }

    @Test func aClientCannotSendMarkedBytes() throws {
        var sent = FetchRunParams(url: "http://h/")
        sent.headers = [HeaderField("A", "\u{10FFE9}é")]
        let params = try FetchRunParams(JSON.parse(sent.json.text))
        #expect(params.headers.first?.value.headerBytes == [0xF4, 0x8F, 0xBF, 0xA9, 0xC3, 0xA9])
        #expect(params.headers.json.elements?.first?.elements?.last?.string == "\u{10FFE9}é")
    }

    @Test("Rules R10 and X2: a realm in ISO 8859-1 and one in UTF-8 are two spaces, which people name alike")
    func theSameRealmInTwoEncodingsIsTwoSpaces() {
        func space(_ realm: [UInt8]) -> ProtectionSpace {
            ProtectionSpace(
                scheme: "https", host: "h", port: 443, realm: ExactText(text(realm)), authenticationMethod: .httpBasic)
        }
        let (latin1, utf8) = (space([0x42, 0xFC]), space(Array("Bü".utf8)))
        #expect(latin1 != utf8 && Set([latin1, utf8]).count == 2)
        #expect(latin1.json == utf8.json && latin1.json["realm"]?.string == "Bü")
        let pattern = SpacePattern(scheme: "https", host: "h", port: 443, realm: "Bü")
        #expect(pattern.matches(latin1) && pattern.matches(utf8))
        #expect(SpacePattern(latin1).matches(latin1) && SpacePattern(latin1).realm == "Bü")
        #expect(!SpacePattern(latin1).matches(space([0xFC])))
    }
}
