import ArgumentParser
import Foundation
import JSONText
import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct ResumptionTests {
    private func head(_ status: Int, _ fields: [String: String] = [:]) -> ReportedHead {
        ReportedHead(["status": .integer(status), "headers": .array(fields.map { [.string($0), .string($1)] })])
    }

    /// A partial file of ten bytes.
    private func resumption(_ resume: FetchItem.Resume, validator: String?) throws -> Resumption {
        let folder = FileManager.default.temporaryDirectory.appending(path: "watchword-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let part = folder.appending(path: "f.part")
        try Data(repeating: 1, count: 10).write(to: part)
        if let validator { try Data(validator.utf8).write(to: URL(filePath: part.path + ".validator")) }
        return try Resumption(resume, part: PartialFile(for: folder.appending(path: "f").path, createsFolders: false))
    }

    @Test func asksForTheRestOfTheSameVersion() throws {
        let tagged = try resumption(.endOfPartial, validator: "\"v1\"").headers
        #expect(tagged == [HeaderField("Range", "bytes=10-"), HeaderField("If-Range", "\"v1\"")])
        #expect(try resumption(.endOfPartial, validator: nil).headers == [])
        #expect(try resumption(.atByte(4), validator: nil).headers == [HeaderField("Range", "bytes=4-")])
        #expect(throws: (any Error).self) { try resumption(.atByte(11), validator: nil) }
    }

    @Test func continuesOnlyWithTheSameVersion() throws {
        let rest = "bytes 10-19/20"
        let automatic = try resumption(.endOfPartial, validator: "\"v1\"")
        #expect(automatic.verdict(head(206, ["Content-Range": rest, "ETag": "\"v1\""])) == .write(from: 10))
        #expect(automatic.verdict(head(206, ["Content-Range": rest, "ETag": "\"v2\""])) == .startOver)
        #expect(automatic.verdict(head(206, ["Content-Range": rest])) == .startOver)
        #expect(automatic.verdict(head(200)) == .write(from: 0))
        #expect(automatic.verdict(head(416, ["Content-Range": "bytes */10"])) == .isComplete)
        #expect(automatic.verdict(head(416, ["Content-Range": "bytes */7"])) == .startOver)
        #expect(automatic.verdict(head(416)) == .startOver)
        for (status, fields, code) in [
            (206, ["ETag": "\"v1\""], 33), (206, ["Content-Range": "bytes 9-19/20", "ETag": "\"v1\""], 33),
            (404, [:], 22),
        ] as [(Int, [String: String], Int32)] {
            guard case .refuse(let found, _) = automatic.verdict(head(status, fields)) else {
                Issue.record("\(status) is not refused")
                continue
            }
            #expect(found == code)
        }
        let dated = try resumption(.endOfPartial, validator: "Sun, 06 Nov 1994 08:49:37 GMT")
        // A redirect to another server keeps Range and loses If-Range.
        #expect(dated.verdict(head(206, ["Content-Range": rest])) == .startOver)
        let same = ["Content-Range": rest, "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]
        #expect(dated.verdict(head(206, same)) == .write(from: 10))
        #expect(
            dated.verdict(head(206, ["Content-Range": rest, "Last-Modified": "Sun, 06 Nov 1994 08:49:38 GMT"]))
                == .startOver)
    }

    @Test func anOffsetInTheCommandIsNotChanged() throws {
        let fixed = try resumption(.atByte(10), validator: nil)
        for head in [head(200), head(416), head(416, ["Content-Range": "bytes */7"])] {
            guard case .refuse(33, _) = fixed.verdict(head) else {
                Issue.record("not refused")
                return
            }
        }
        #expect(fixed.verdict(head(206, ["Content-Range": "bytes 10-19/20"])) == .write(from: 10))
        #expect(fixed.verdict(head(416, ["Content-Range": "bytes */10"])) == .isComplete)
    }

    @Test(
        arguments: [
            (["ETag": "\"a\""], "\"a\""), (["ETag": "W/\"a\""], nil), (["ETag": "a"], nil), ([:], nil),
            (
                [
                    "ETag": "W/\"a\"", "Last-Modified": "Sun, 06 Nov 1994 08:00:00 GMT",
                    "Date": "Sun, 06 Nov 1994 09:00:00 GMT",
                ], nil
            ),
            (
                ["Last-Modified": "Sun, 06 Nov 1994 08:00:00 GMT", "Date": "Sun, 06 Nov 1994 09:00:00 GMT"],
                "Sun, 06 Nov 1994 08:00:00 GMT"
            ),
            (["Last-Modified": "Sun, 06 Nov 1994 08:59:01 GMT", "Date": "Sun, 06 Nov 1994 09:00:00 GMT"], nil),
            (["Last-Modified": "Sun, 06 Nov 1994 08:59:01 GMT"], nil),
        ] as [([String: String], String?)])
    func onlyStrongValidatorsAreStored(fields: [String: String], validator: String?) {
        #expect(head(200, fields).strongValidator == validator)
    }

    @Test(
        arguments: [
            (["-o", "a", "-O"], [false, true]),
            (["-O", "--output=a", "--output", "b", "--remote-name"], [true, false, false, true]),
            (["-L", "-oa", "-O", "--", "-O"], [false, true]), (["-LO", "-o", "a"], [true, false]),
        ] as [([String], [Bool])])
    func theOrderOfOutputs(arguments: [String], order: [Bool]) throws {
        #expect(FileOptions.order(of: try CurlArguments(arguments).rewritten) == order)
    }

    @Test func everyURLHasItsOutput() throws {
        let named = try FileOptions.parse(["-o", "a", "-o", "-"])
        #expect((0...2).map(named.place) == [.file("a"), .standardOutput, .standardOutput])
        #expect((0...1).map(try FileOptions.parse(["-O"]).place) == [.remoteName, .standardOutput])
        #expect(
            (0...1).map(try FileOptions.parse(["-o", "a", "--remote-name-all"]).place) == [.file("a"), .remoteName])
    }
}
