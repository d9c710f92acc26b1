import Foundation
import Testing

/// Checks random mutations of the corpora for a short time in every test run, without libFuzzer and its coverage feedback (see
/// `contrib/fuzz/run`). A failure prints the seed; `WATCHWORD_FUZZ_SEED` repeats its mutations, and `WATCHWORD_FUZZ_SECONDS` sets
/// the time per target.
@Suite(.serialized) struct MutationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let time = Duration.seconds(environment["WATCHWORD_FUZZ_SECONDS"].flatMap { Double($0) } ?? 0.5)

    @Test(arguments: FuzzTarget.allCases)
    func everyPropertyHolds(target: FuzzTarget) throws {
        let seed = Self.environment["WATCHWORD_FUZZ_SEED"].flatMap { UInt64($0) } ?? .random(in: 1...UInt64.max)
        // Printed before the run, because a crash prints nothing.
        print("WATCHWORD_FUZZ_SEED=\(seed) \(target)")
        var mutator = try Mutator(target, seed: seed)
        let end = ContinuousClock.now + Self.time
        var count = 0
        while ContinuousClock.now < end {
            let bytes = mutator.next()
            count += 1
            #expect(throws: Never.self, "seed \(seed), input \(count): \(Data(bytes).base64EncodedString())") {
                try target.check(bytes)
            }
        }
        #expect(count > 20, "too slow to find anything")
    }

    @Test func aSeedMakesTheSameChangesAgain() throws {
        var (first, second, other) = (
            try Mutator(.frames, seed: 7), try Mutator(.frames, seed: 7), try Mutator(.frames, seed: 8)
        )
        let made = (0..<50).map { _ in first.next() }
        #expect(made == (0..<50).map { _ in second.next() })
        #expect(made != (0..<50).map { _ in other.next() })
        #expect(Set(made).count > 25)
    }

    @Test func wordsAreReadAsLibFuzzerReadsThem() {
        let text = "# a comment\n\n\"plain\"\nname=\"a\\\"b\\\\c\\x0d\\x0A\"\n"
        #expect(Mutator.words(text) == [Array("plain".utf8), Array("a\"b\\c\r\n".utf8)])
    }
}

/// Generates inputs from a corpus and a dictionary.
private struct Mutator {
    private static let largest = 4096

    private let corpus: [[UInt8]]
    private let words: [[UInt8]]
    private var state: UInt64

    init(_ target: FuzzTarget, seed: UInt64) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let files = try FileManager.default.contentsOfDirectory(
            at: folder.appending(path: "corpus/\(target.rawValue)"), includingPropertiesForKeys: nil)
        corpus = try files.sorted { $0.path < $1.path }.map { Array(try Data(contentsOf: $0).prefix(Self.largest)) }
        let dictionary = folder.appending(path: "dictionaries/\(target.rawValue).dict")
        words = (try? String(contentsOf: dictionary, encoding: .utf8)).map(Self.words) ?? []
        state = seed
    }

    mutating func next() -> [UInt8] {
        var bytes = corpus[random(corpus.count)]
        for _ in 0...random(4) { change(&bytes) }
        return Array(bytes.prefix(Self.largest))
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        let place = random(bytes.count + 1)
        let end = min(bytes.count, place + 1 + random(16))
        switch random(7) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(random(8))
        case 1 where place < bytes.count: bytes[place] = UInt8(random(256))
        case 2: bytes.removeSubrange(place..<end)
        case 3: bytes.insert(contentsOf: bytes[place..<end], at: random(bytes.count + 1))
        case 4 where !words.isEmpty: bytes.insert(contentsOf: words[random(words.count)], at: place)
        case 5 where !words.isEmpty: bytes.replaceSubrange(place..<end, with: words[random(words.count)])
        case 6:
            let other = corpus[random(corpus.count)]
            bytes.replaceSubrange(place..., with: other[random(other.count + 1)...])
        default: bytes.insert(UInt8(random(256)), at: place)
        }
    }

    /// Returns a random number below `bound` (SplitMix64: Steele, Lea and Flood, 2014).
    private mutating func random(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }

    /// Parses a libFuzzer dictionary: `"word"` or `name="word"` per line, with `\"`, `\\` and `\xNN`.
    static func words(_ text: String) -> [[UInt8]] {
        text.split(separator: "\n").compactMap { line in
            guard !line.hasPrefix("#"), let start = line.utf8.firstIndex(of: UInt8(ascii: "\"")), line.hasSuffix("\"")
            else { return nil }
            var rest = line.utf8[line.utf8.index(after: start)...].dropLast()
            var word: [UInt8] = []
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() else {
                    word.append(byte)
                    continue
                }
                if escaped == UInt8(ascii: "x") {
                    word.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                    rest = rest.dropFirst(2)
                } else {
                    word.append(escaped)
                }
            }
            return word
        }
    }
}
