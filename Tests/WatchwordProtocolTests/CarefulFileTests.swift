import Glibc
import Testing
import WatchwordProtocol

/// A file is read or changed only if it is the one that is meant.
@Suite final class CarefulFileTests {
    private let folder: String
    private var path: String { "\(folder)/file" }
    private var other: String { "\(folder)/other" }

    init() throws {
        var template = Array("/tmp/watchword-test.XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        close(open(other, O_CREAT | O_WRONLY, 0o600))
    }

    deinit {
        for path in [path, other] { if unlink(path) != 0 { rmdir(path) } }
        rmdir(folder)
    }

    private func failure(_ flags: Int32 = O_RDONLY, followsLinks: Bool = false) -> CarefulFile.Failure? {
        do throws(CarefulFile.Failure) {
            let file = try CarefulFile(path, flags, followsLinks: followsLinks)
            #expect(fcntl(file.descriptor, F_GETFD) & FD_CLOEXEC != 0)
            return nil
        } catch {
            return error
        }
    }

    @Test func aRegularFileIsOpened() throws {
        #expect(failure() == .systemCall(ENOENT) && failure(O_RDWR | O_CREAT) == nil && failure() == nil)
        let released = try CarefulFile(path).release()
        #expect(fcntl(released, F_GETFD) >= 0)
        close(released)
    }

    @Test(arguments: [O_RDONLY, O_RDWR | O_CREAT])
    func aSymbolicLinkIsRefusedUnlessLinksAreFollowed(flags: Int32) {
        symlink(other, path)
        #expect(failure(flags) == .symbolicLink && failure(flags, followsLinks: true) == nil)
    }

    @Test func aHardLinkIsReadButNotChanged() {
        link(other, path)
        #expect(failure() == nil)
        #expect(failure(O_WRONLY) == .hardLink && failure(O_RDWR | O_CREAT | O_APPEND) == .hardLink)
    }

    @Test(.timeLimit(.minutes(1))) func nothingElseIsWaitedFor() {
        mkfifo(path, 0o600)
        #expect(failure() == .notRegular && failure(O_RDWR) == .notRegular)
        unlink(path)
        mkdir(path, 0o700)
        #expect(failure() == .notRegular)
    }
}
