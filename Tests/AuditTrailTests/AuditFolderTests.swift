import Glibc
import JSONText
import Testing
import WatchwordProtocol

@testable import AuditTrail

/// The files of the audit log on the disk.
@Suite final class AuditFolderTests {
    private let root: String
    private var path: String { "\(root)/state/watchword" }

    init() throws {
        var template = Array("/tmp/watchword-audit-XXXXXX".utf8CString)
        root = String(cString: try #require(mkdtemp(&template)))
    }

    deinit {
        for number in 0...2 { unlink("\(path)/audit.\(number).reduced.jsonl") }
        for name in [
            "audit.new.jsonl", "audit.jsonl", "audit.0.jsonl", "audit.1.jsonl", "audit.2.jsonl", "audit.3.jsonl",
            "target",
        ] {
            unlink("\(path)/\(name)")
        }
        for folder in [path, "\(root)/state", root] { rmdir(folder) }
    }

    private func contents(_ name: String = "audit.jsonl") -> String? {
        let file = open("\(path)/\(name)", O_RDONLY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        return String(decoding: bytes[..<read(file, &bytes, bytes.count)], as: UTF8.self)
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    private func line(_ text: String) -> [UInt8] { Array("\(text)\n".utf8) }

    private func put(_ text: String, in name: String = "audit.jsonl", mode: mode_t = 0o600) {
        mkdir("\(root)/state", 0o700)
        mkdir(path, 0o700)
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, mode)
        _ = text.withCString { write(file, $0, strlen($0)) }
        fchmod(file, mode)
        close(file)
    }

    @Test func folderAndFileArePrivate() throws {
        var folder = AuditFolder(path: path)
        try folder.append(line("one"), AuditLimits())
        try folder.append(line("two"), AuditLimits())
        #expect(contents() == "one\ntwo\n")
        #expect(mode(path) == 0o700 && mode("\(path)/audit.jsonl") == 0o600)
    }

    @Test func permissionsOfExistingFilesAreRestricted() throws {
        put("before\n", mode: 0o644)
        chmod(path, 0o755)
        var folder = AuditFolder(path: path)
        try folder.append(line("one"), AuditLimits())
        #expect(contents() == "before\none\n")
        #expect(mode(path) == 0o700 && mode("\(path)/audit.jsonl") == 0o600)
    }

    @Test func anIncompleteLineDoesNotDamageTheNext() throws {
        put("{\"half")
        var folder = AuditFolder(path: path)
        try folder.append(line("one"), AuditLimits())
        #expect(contents() == "{\"half\none\n")
    }

    @Test func anIncompleteLineOfAnotherBrokerDoesNotDamageTheNext() throws {
        var (folder, other) = (AuditFolder(path: path), AuditFolder(path: path))
        try folder.append(line("one"), AuditLimits())
        try other.append(line("two"), AuditLimits())
        // The other broker was killed during a write, while this one had the file open.
        put((contents() ?? "") + "{\"half")
        try folder.append(line("three"), AuditLimits())
        try folder.append(line("four"), AuditLimits())
        #expect(contents() == "one\ntwo\n{\"half\nthree\nfour\n")
    }

    @Test func aLinkInPlaceOfTheFileIsRefused() {
        put("")
        unlink("\(path)/audit.jsonl")
        symlink("\(path)/target", "\(path)/audit.jsonl")
        var folder = AuditFolder(path: path)
        #expect(throws: AuditFailure.self) { try folder.append(self.line("one"), AuditLimits()) }
        #expect(contents("target") == nil)
        // The next append succeeds once the link is removed.
        unlink("\(path)/audit.jsonl")
        #expect(throws: Never.self) { try folder.append(self.line("two"), AuditLimits()) }
        #expect(contents() == "two\n")
    }

    @Test func aPipeInPlaceOfTheFileIsNotWaitedFor() {
        put("")
        unlink("\(path)/audit.jsonl")
        mkfifo("\(path)/audit.jsonl", 0o600)
        var folder = AuditFolder(path: path)
        #expect(throws: AuditFailure.self) { try folder.append(self.line("one"), AuditLimits()) }
    }

    @Test func aLinkInPlaceOfTheFolderIsRefused() {
        mkdir("\(root)/state", 0o700)
        symlink(root, path)
        var folder = AuditFolder(path: path)
        #expect(throws: AuditFailure.self) { try folder.append(self.line("one"), AuditLimits()) }
        #expect(unlink(path) == 0 && access("\(root)/audit.jsonl", F_OK) != 0)
    }

    /// Ten bytes hold two lines of four.
    @Test func fullFilesAreRotatedAndTheOldestIsRemoved() throws {
        var folder = AuditFolder(path: path)
        let limits = AuditLimits(fileBytes: 10, oldFiles: 2)
        for number in 0..<9 { try folder.append(line("  \(number)"), limits) }
        #expect(contents() == "  8\n")
        #expect(contents("audit.1.jsonl") == "  6\n  7\n")
        #expect(contents("audit.2.jsonl") == "  4\n  5\n")
        #expect(contents("audit.3.jsonl") == nil)
    }

    private func record(_ kind: AuditEvent.Kind, _ number: Int) -> [UInt8] {
        var event = AuditEvent(kind, timeMs: 0)
        event.client = AuditEvent.Client(name: "a", pid: number, uid: 1, executable: "/usr/bin/\(number % 7)")
        return event.json.serialized(terminator: "\n")
    }

    /// Whatever a program does after a login, and however often, the record of the login remains.
    @Test(
        "Rule G10: other records do not push the record of a login out of the log", arguments: [0, 1, 2, 4],
        AuditEvent.Kind.allCases.filter { $0 != .credentialUsed })
    func refusedRequestsDoNotDisplaceALogin(oldFiles: Int, kind: AuditEvent.Kind) throws {
        var folder = AuditFolder(path: path)
        let limits = AuditLimits(fileBytes: 4096, oldFiles: oldFiles)
        try folder.append(record(.credentialUsed, 1), limits)
        for number in 0..<300 { try folder.append(record(kind, number), limits) }
        let texts = (0...oldFiles).compactMap { contents(StateLocation.auditFile($0)) }
        #expect(texts.count { $0.contains("credentialUsed") } == 1)
        #expect(texts.allSatisfy { $0.utf8.count <= limits.fileBytes })
        #expect(contents("audit.new.jsonl") == nil && contents("audit.\(oldFiles + 1).jsonl") == nil)
    }

    @Test func aFileWithAnotherNameIsNotWritten() throws {
        put("precious\n")
        link("\(path)/audit.jsonl", "\(path)/target")
        var folder = AuditFolder(path: path)
        #expect(throws: AuditFailure.self) { try folder.append(self.line("one"), AuditLimits()) }
        #expect(contents("target") == "precious\n")
    }

    @Test func aLowerLimitRemovesOldFiles() throws {
        var folder = AuditFolder(path: path)
        for number in 0..<9 { try folder.append(line("  \(number)"), AuditLimits(fileBytes: 10, oldFiles: 3)) }
        #expect(contents("audit.3.jsonl") != nil)
        try folder.append(line("  9"), AuditLimits(fileBytes: 1, oldFiles: 1))
        #expect(contents("audit.1.jsonl") == "  8\n" && contents() == "  9\n")
        #expect(contents("audit.2.jsonl") == nil && contents("audit.3.jsonl") == nil)
        try folder.append(line(" 10"), AuditLimits(fileBytes: 1, oldFiles: 0))
        #expect(contents() == " 10\n" && contents("audit.1.jsonl") == nil)
    }

    @Test(arguments: ["link", "folder", "full folder", "pipe"], [0, 1, 2])
    func somethingInPlaceOfAnOldFileDoesNotStopTheLog(what: String, oldFiles: Int) throws {
        put("")
        let place = "\(path)/audit.\(max(oldFiles, 1)).jsonl"
        switch what {
        case "link": symlink("\(path)/target", place)
        case "pipe": mkfifo(place, 0o600)
        default: mkdir(place, 0o700)
        }
        if what == "full folder" { mkdir("\(place)/a", 0o700) }
        var folder = AuditFolder(path: path)
        var reports: [AuditFailure] = []
        for number in 0..<9 {
            try folder.append(line("  \(number)"), AuditLimits(fileBytes: 10, oldFiles: oldFiles))
            if let report = folder.takeLeftOut() { reports.append(report) }
        }
        #expect(reports.count == 1)
        #expect(numbers == Array((9 - numbers.count)..<9))
        #expect(contents("target") == nil)
        for number in 0...3 {
            rmdir("\(path)/audit.\(number).jsonl.1/a")
            rmdir("\(path)/audit.\(number).jsonl.1")
        }
    }

    @Test func aLineLargerThanTheFileLimitHasItsOwnFile() throws {
        var folder = AuditFolder(path: path)
        for text in ["large one", "large two"] { try folder.append(line(text), AuditLimits(fileBytes: 4, oldFiles: 3)) }
        #expect(contents() == "large two\n" && contents("audit.1.jsonl") == "large one\n")
    }

    @Test func twoBrokersWriteIntoOneLogAndLoseNothing() throws {
        var (one, other) = (AuditFolder(path: path), AuditFolder(path: path))
        let limits = AuditLimits(fileBytes: 10, oldFiles: 3)
        for number in 0..<6 {
            if number % 2 == 0 {
                try one.append(line("  \(number)"), limits)
            } else {
                try other.append(line("  \(number)"), limits)
            }
        }
        #expect(contents("audit.2.jsonl") == "  0\n  1\n")
        #expect(contents("audit.1.jsonl") == "  2\n  3\n")
        #expect(contents() == "  4\n  5\n")
    }

    /// Returns the numbers in all files, the oldest first.
    private var numbers: [Int] {
        let names = (1...3).reversed().map { "audit.\($0).jsonl" } + ["audit.0.jsonl", "audit.jsonl"]
        return names.flatMap { (contents($0) ?? "").split(separator: "\n").map { Int($0.drop { $0 == " " }) ?? -1 } }
    }

    /// Another broker has looked at the name of the file, and writes after this one has taken the name away.
    @Test(arguments: [0, 1, 2])
    func aLineThatIsBeingAppendedDuringRotationIsNotLost(oldFiles: Int) throws {
        var folder = AuditFolder(path: path)
        let limits = AuditLimits(fileBytes: 100, oldFiles: oldFiles)
        for number in 0..<oldFiles { put("   \(number)\n", in: "audit.\(oldFiles - number).jsonl") }
        for number in oldFiles..<5 { try folder.append(line("   \(number)"), limits) }
        let other = open("\(path)/audit.jsonl", O_WRONLY | O_APPEND)
        defer { close(other) }
        #expect(flock(other, LOCK_SH) == 0)
        try folder.append(line(String(repeating: " ", count: 99) + "5"), limits)
        try folder.append(line("   6"), limits)
        #expect(write(other, line("   7"), 5) == 5 && flock(other, LOCK_UN) == 0)
        try folder.append(line("   8"), AuditLimits(fileBytes: 200, oldFiles: oldFiles))
        try folder.append(
            line(String(repeating: " ", count: 199) + "9"), AuditLimits(fileBytes: 600, oldFiles: oldFiles))
        #expect(numbers.sorted() == Array(0..<10))
    }

    @Test(arguments: [0, 1, 2])
    func anotherBrokerWithTheOldFileOpenAppendsToTheNewOne(oldFiles: Int) throws {
        var (folder, other) = (AuditFolder(path: path), AuditFolder(path: path))
        let limits = AuditLimits(fileBytes: 20, oldFiles: oldFiles)
        for number in 0..<200 {
            if number % 3 == 0 {
                try folder.append(line("\(1000 + number)"), limits)
            } else {
                try other.append(line("\(1000 + number)"), limits)
            }
        }
        #expect(numbers == Array((1200 - numbers.count)..<1200))
    }

    /// The files as a crash leaves them: after each step of a rotation.
    @Test(arguments: [
        ["audit.0": "3 4", "audit.1": "2", "audit.2": "1"],
        ["audit.0": "3 4", "audit.1": "2", "audit.2": "1", "audit.new": "1"],
        ["audit.0": "3 4", "audit.1.reduced": "1 2", "audit.1": "2", "audit.2": "1"],
        ["audit.0": "3 4", "audit.1.reduced": "1 2", "audit.1": "2"],
        ["audit.0": "3 4", "audit.1.reduced": "1 2"],
        ["audit.0": "3 4", "audit.1": "1 2"],
        ["audit.0": "3 4", "audit.2": "1 2"],
        ["audit.1": "3 4", "audit.2": "1 2"],
    ])
    func aRotationThatWasInterruptedIsFinished(files: [String: String]) throws {
        for (name, text) in files { put(text.replacing(" ", with: "\n") + "\n", in: "\(name).jsonl") }
        put("5\n")
        var folder = AuditFolder(path: path)
        // Full, so that the files are rotated.
        for number in 6..<9 { try folder.append(line("\(number)"), AuditLimits(fileBytes: 10, oldFiles: 2)) }
        try folder.append(line(String(repeating: " ", count: 9) + "9"), AuditLimits(fileBytes: 10, oldFiles: 2))
        #expect(numbers == Array(1...9))
        #expect((0...2).allSatisfy { contents("audit.\($0).reduced.jsonl") == nil })
        #expect(contents("audit.new.jsonl") == nil || files["audit.new"] != nil)
    }

    /// The file is replaced as logrotate does.
    @Test func aReplacedFileIsNotWrittenTo() throws {
        var folder = AuditFolder(path: path)
        try folder.append(line("one"), AuditLimits())
        rename("\(path)/audit.jsonl", "\(path)/target")
        put("")
        try folder.append(line("two"), AuditLimits())
        #expect(contents() == "two\n" && contents("target") == "one\n")
    }

    @Test func aRemovedFileIsCreatedAgain() throws {
        var folder = AuditFolder(path: path)
        try folder.append(line("one"), AuditLimits())
        unlink("\(path)/audit.jsonl")
        try folder.append(line("two"), AuditLimits())
        #expect(contents() == "two\n")
    }
}
