import Foundation
import Testing

/// Checks the corpora of the fuzzers without a fuzzer: about a hundred prefixes of each file, and the whole file.
struct CorpusTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../corpus")

    @Test(arguments: FuzzTarget.allCases)
    func everyPropertyHolds(target: FuzzTarget) throws {
        let folder = Self.corpus.appending(path: target.rawValue)
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            let bytes = [UInt8](try Data(contentsOf: file))
            let step = max(1, bytes.count / 100)
            for count in Array(stride(from: 0, to: bytes.count, by: step)) + [bytes.count] {
                #expect(throws: Never.self, "\(file.lastPathComponent), \(count) bytes") {
                    try target.check(Array(bytes[..<count]))
                }
            }
        }
    }
}
