import Glibc
import JSONText
import TestServers
import Testing

struct JSONWritingTests {
    @Test(arguments: [
        (41.2, "41.2"), (0.1, "0.1"), (1, "1.0"), (-2.5, "-2.5"), (0.1 + 0.2, "0.3"), (1e15, "1e15"), (1e-7, "1e-7"),
        (123456.789, "123456.789"),
    ])
    func realsAreWrittenAsPeopleWriteThem(value: Double, text: String) {
        #expect(JSON.real(value)?.text == text)
    }

    @Test(arguments: UInt64(1)...200)
    func realsAreWrittenAsJanssonWritesThem(seed: UInt64) throws {
        var state = [UInt16(truncatingIfNeeded: seed), 0x330E, 0x1234]
        let bits = UInt64(bitPattern: Int64(jrand48(&state))) << 32 | UInt64(nrand48(&state))
        for value in [
            Double(bitPattern: bits), Double(nrand48(&state)) / 1000, erand48(&state) * 1e15, 1e14 * Double(seed),
        ]
        where value.isFinite {
            #expect(try JSON.real(value)?.text == JSON.parse("\(value)").text)
        }
    }

    @Test(arguments: 0..<40, ["\"", "\\", "\n", "\u{1F}", " ", "!", "#", "[", "]", "é", "\u{7F}"])
    func charactersAreEscapedAtEveryPosition(place: Int, character: String) throws {
        let text = String(repeating: "x", count: place) + character + String(repeating: "y", count: 39 - place)
        #expect(try JSON.string(text).text == JSON.parse(JSON.string(text).text).text)
        #expect(try JSON.parse(JSON.string(text).text).string == text)
    }

    @Test func controlCharactersAreEscaped() {
        let json = JSON.string("\u{0}\u{1}\u{8}\t\n\u{B}\u{C}\r\u{1F}\"\\/")
        #expect(json.text == #""\u0000\u0001\b\t\n\u000B\f\r\u001F\"\\/""#)
    }

    @Test func aLineOfTextHoldsNoLineEnd() throws {
        let json: JSON = ["a\nb": ["c\r\nd", "\u{85}"]]
        #expect(!json.serialized().contains(UInt8(ascii: "\n")))
        #expect(!json.serialized().contains(UInt8(ascii: "\r")))
    }

    @Test func textOfOtherLanguagesStaysAsItIs() {
        #expect(JSON.string("é€𝄞").text == "\"é€𝄞\"")
    }

    @Test func theTerminatorFollowsTheText() {
        #expect(String(decoding: JSON.array([1]).serialized(terminator: "\r\n"), as: UTF8.self) == "[1]\r\n")
    }

    @Test(arguments: UInt16(1)...200)
    func serializedValuesParseToEqualValues(seed: UInt16) throws {
        var random = RandomJSON(seed: seed)
        let json = random.value(depth: 5)
        let text = json.serialized()
        let limits = JSONLimits(depth: 64, values: 100_000)
        let parsed = try JSON.parse(text, limits: limits)
        #expect(parsed == json)
        #expect(parsed.serialized() == text, "serializing again yields the same text")
        #expect(json.serializedCount == text.count)
        #expect(written(json) == text)
    }

    /// Texts are searched sixteen and eight bytes at a time.
    @Test(arguments: 0..<40)
    func eachCharacterIsEscapedAtEachPosition(position: Int) throws {
        for value in UInt8.min...UInt8.max {
            let (start, end) = (String(repeating: "a", count: position), String(repeating: "b", count: 39 - position))
            let text = start + String(Unicode.Scalar(value)) + end
            let written = JSON.string(text).serialized()
            #expect(try JSON.parse(written, limits: JSONLimits(depth: 1, values: 1)).string == text)
            #expect(!written.contains { $0 < 0x20 })
        }
    }

    @Test func writingStaysWithinItsMemory() {
        let json: JSON = ["a": "é\n", "b": [1, .null]]
        let count = json.serializedCount
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: count + 16, alignment: 1)
        defer { block.deallocate() }
        block.initializeMemory(as: UInt8.self, repeating: 0xEE)
        json.write(UnsafeMutableRawBufferPointer(rebasing: block[..<count]))
        #expect(Array(block[..<count]) == json.serialized())
        #expect(block[count...].allSatisfy { $0 == 0xEE })
    }

    @Test(.startsProcess) func aDestinationThatIsTooSmallStopsTheProgram() async {
        await #expect(processExitsWith: .failure) {
            let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 3, alignment: 1)
            JSON.array([1, 2]).write(block)
        }
    }

    private func written(_ json: JSON) -> [UInt8] {
        Array(unsafeUninitializedCapacity: json.serializedCount) { destination, count in
            count = json.serializedCount
            json.write(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(destination)[..<count]))
        }
    }
}

/// Random values of every kind, which depend only on the seed.
private struct RandomJSON {
    private var state: [UInt16]

    init(seed: UInt16) { state = [seed, 0x330E, 0x1234] }

    mutating func value(depth: Int) -> JSON {
        switch below(depth == 0 ? 5 : 7) {
        case 0: .null
        case 1: .boolean(below(2) == 0)
        case 2: .integer(integer())
        case 3: .real(Double(integer() % 1_000_000) / 64) ?? .null
        case 4: .string(text())
        case 5: .array((0..<below(5)).map { _ in value(depth: depth - 1) })
        default:
            (0..<below(5)).reduce([:]) { object, _ in object.adding([name(): value(depth: depth - 1)]) }
        }
    }

    private mutating func below(_ bound: Int) -> Int { nrand48(&state) % bound }

    private mutating func integer() -> Int {
        let magnitude = below(64)
        return (nrand48(&state) << 33 ^ jrand48(&state)) >> magnitude
    }

    private mutating func text() -> String {
        let ranges: [ClosedRange<Int>] = [0...0x1F, 0x20...0x7F, 0x80...0xD7FF, 0xE000...0xFFFF, 0x10000...0x10FFFF]
        let scalars = (0..<below(12)).compactMap { _ in
            let range = ranges[below(ranges.count)]
            return UnicodeScalar(UInt32(range.lowerBound + below(range.count)))
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// jansson does not support names with U+0000.
    private mutating func name() -> String { text().replacing("\u{0}", with: "0") }
}
