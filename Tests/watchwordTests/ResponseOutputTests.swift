import ArgumentParser
import Foundation
import Testing

@testable import watchword

@Suite struct ResponseOutputTests {
    /// The kernel follows at most 40 symbolic links (path_resolution(7)).
    @Test func followsAtMostFortyLinks() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "watchword-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for number in 1...41 {
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/\(number)", withDestinationPath: "\(number - 1)")
        }
        #expect(try ResponseOutput.target(of: "\(folder)/40") == "\(folder)/0")
        let failure = #expect(throws: ExitCode.self) { try ResponseOutput.target(of: "\(folder)/41") }
        #expect(failure?.rawValue == ExitStatus.writeError)
    }
}
