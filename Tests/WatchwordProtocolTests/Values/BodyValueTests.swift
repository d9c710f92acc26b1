import Glibc
import JSONText
import Testing
import WatchwordProtocol

struct BodyValueTests {
    @Test(
        arguments: [
            ([], #"{"type":"string","value":""}"#), (Array("a,b\né".utf8), #"{"type":"string","value":"a,b\né"}"#),
            ([0x61, 0x00], #"{"type":"string","value":"a\u0000"}"#), ([0xFF], #"{"type":"base64","value":"/w=="}"#),
            ([0xEF, 0xBB, 0xBF, 0x61], "{\"type\":\"string\",\"value\":\"\u{FEFF}a\"}"),
            ([0xED, 0xA0, 0x80], #"{"type":"base64","value":"7aCA"}"#),
        ] as [([UInt8], String)])
    func aStringWhereItIsUTF8AndBase64WhereNot(bytes: [UInt8], text: String) throws {
        #expect(BodyValue.json(bytes).text == text)
        #expect(try BodyValue.bytes(JSON.parse(text)) == bytes)
    }

    @Test(
        arguments: [(0x01, "base64"), (0x0A, "base64"), (0x22, "base64"), (0x5C, "base64"), (0x61, "string")]
            as [(UInt8, String)])
    func aLargeOneStaysSmall(byte: UInt8, type: String) {
        let bytes = [UInt8](repeating: byte, count: 1 << 20)
        let json = BodyValue.json(bytes)
        #expect(json["type"]?.string == type)
        #expect(json.text.utf8.count < bytes.count * 3 / 2)
        let isSame = BodyValue.bytes(json) == bytes
        #expect(isSame)
    }

    @Test func ordinaryTextStaysAString() {
        let lines = String(repeating: "{\"name\": \"value\"},\n", count: 10_000)
        #expect(BodyValue.json(Array(lines.utf8))["type"]?.string == "string")
    }

    @Test(arguments: [
        "{}", #"{"type":"string"}"#, #"{"value":"x"}"#, #"{"type":"base64","value":"x"}"#,
        #"{"type":"string","value":1}"#,
        #"{"type":"base64","value":null}"#, #"{"type":"handle","value":"x"}"#, #"{"type":1,"value":"x"}"#, #""x""#,
        "null",
    ])
    func otherValuesAreNotBodies(text: String) throws {
        #expect(try BodyValue.bytes(JSON.parse(text)) == nil)
    }

    @Test(arguments: UInt16(1)...60)
    func anyBytesAreReadBack(seed: UInt16) throws {
        var state = [seed, 0x330E, 0x1234]
        let bytes = (0..<Int(seed) * 7).map { _ in UInt8(truncatingIfNeeded: nrand48(&state) >> 8) }
        #expect(try BodyValue.bytes(JSON.parse(BodyValue.json(bytes).text)) == bytes)
        #expect(decode(encode(bytes)) == bytes)
        #expect(encode(bytes).utf8.count == Base64.encodedCount(bytes.count))
    }

    /// RFC 4648 section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func theVectorsOfRFC4648(plain: String, encoded: String) {
        #expect(encode(Array(plain.utf8)) == encoded)
        #expect(decode(encoded) == Array(plain.utf8))
        #expect(Base64.encodedCount(plain.utf8.count) == encoded.utf8.count)
    }

    @Test func everyDigitOfTheAlphabet() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        let bytes = decode(alphabet)
        #expect(bytes?.count == 48)
        #expect(bytes.map(encode) == alphabet)
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zm8", "Zm9vY", "=", "==", "===", "====", "Zg===", "A===", "Zg==Zg==", "Zm=v", "Z===", "=Zg=",
        "Zh==", "Zm9=", "Zn==", "Zm8=\n", "\nZm8=", "Zm9v ", "Zm 9v", "Zm-_", "Zm9v,", "Zg=\u{0}", "Zmé=",
        "Zm9vZg==\r\n",
    ])
    func nonCanonicalBase64IsRefused(text: String) {
        #expect(decode(text) == nil)
    }

    /// If two texts had the same bytes, the second could bypass a check of the first.
    @Test func everyOtherTextForTheSameBytesIsRefused() {
        let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for digit in digits {
            #expect((decode("A\(digit)==") != nil) == "AQgw".contains(digit))
            #expect((decode("AA\(digit)=") != nil) == "AEIMQUYcgkosw048".contains(digit))
        }
    }

    @Test func encodingInPlaceWritesNoFurther() {
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 12, alignment: 1)
        defer { block.deallocate() }
        block.initializeMemory(as: UInt8.self, repeating: 0xEE)
        Array("fooba".utf8).withUnsafeBytes { Base64.encode($0, into: block) }
        #expect(Array(block) == Array("Zm9vYmE=".utf8) + [0xEE, 0xEE, 0xEE, 0xEE])
    }

    private func encode(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { Base64.encode($0) } }

    private func decode(_ text: String) -> [UInt8]? { Array(text.utf8).withUnsafeBytes { Base64.decode($0) } }
}
