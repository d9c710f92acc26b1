import Glibc
import Testing
import WatchwordProtocol

@testable import BrokerSocket

@Suite struct ListeningSocketTests {
    private let folder = PrivateFolder()

    private func failure(_ location: SocketLocation) -> SocketFailure? {
        do throws(SocketFailure) {
            _ = try ListeningSocket(at: location)
            return nil
        } catch {
            return error
        }
    }

    private func isFile(_ path: String, _ descriptor: Int32) -> Bool {
        var (named, opened) = (stat(), stat())
        return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino
            && named.st_dev == opened.st_dev
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        lstat(path, &status)
        return status.st_mode & 0o7777
    }

    @Test func theSocketIsPrivateAndCloseOnExec() throws {
        let socket = try ListeningSocket(at: folder.location("deep/s"))
        #expect(mode("\(folder.path)/deep") == 0o700)
        #expect(mode("\(folder.path)/deep/s") == 0o600)
        #expect(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        socket.removeFile()
        #expect(access("\(folder.path)/deep/s", F_OK) != 0)
        close(socket.descriptor)
    }

    @Test func twoBrokersDoNotShareAPath() throws {
        let first = try ListeningSocket(at: folder.location())
        #expect(failure(folder.location()) == .alreadyRunning(path: folder.location().path, pid: Int(getpid())))
        #expect(access(folder.location().path, F_OK) == 0)
        close(first.descriptor)
        first.removeFile()
    }

    /// A process that another thread starts has a copy of every descriptor until it calls execve(2).
    @Test func aLockIsReleasedAlthoughAnotherProcessHasItsDescriptor() throws {
        let path = folder.location().path
        let lock = try SocketLock(forSocket: path)
        let copy = dup(try #require((3..<65_536).first { isFile(path + ".lock", $0) }))
        defer { close(copy) }
        _ = consume lock
        _ = try SocketLock(forSocket: path)
    }

    @Test func aStaleFileIsReplaced() throws {
        var old = try ListeningSocket(at: folder.location()).descriptor
        close(old)
        #expect(access(folder.location().path, F_OK) == 0)
        old = try ListeningSocket(at: folder.location()).descriptor
        close(old)
    }

    @Test func aListenerWithoutALockIsNotReplaced() throws {
        let stranger = try ListeningSocket(at: folder.location()).descriptor
        unlink(folder.location().path + ".lock")
        #expect(failure(folder.location()) == .alreadyRunning(path: folder.location().path, pid: nil))
        close(stranger)
    }

    @Test func aLockFileThatIsALinkIsNotChanged() throws {
        let (lock, other) = (folder.location().path + ".lock", "\(folder.path)/precious")
        let file = open(other, O_CREAT | O_WRONLY, 0o600)
        #expect(write(file, "text", 4) == 4 && close(file) == 0)
        for make in [link, symlink] {
            #expect(make(other, lock) == 0)
            guard case .lockFileNotUsable(lock, _)? = failure(folder.location()) else {
                Issue.record("the link was used")
                continue
            }
            var status = stat()
            #expect(stat(other, &status) == 0 && status.st_size == 4 && unlink(lock) == 0)
        }
        unlink(other)
    }

    @Test func aFileThatIsNotASocketIsNotReplaced() {
        close(open(folder.location().path, O_CREAT | O_WRONLY, 0o600))
        #expect(failure(folder.location()) == .notASocket(path: folder.location().path))
        unlink(folder.location().path)
        symlink("/tmp", folder.location().path)
        #expect(failure(folder.location()) == .notASocket(path: folder.location().path))
    }

    @Test(arguments: [
        (S_IFDIR | 0o700, UInt32(7), true), (S_IFDIR | 0o750, 7, false), (S_IFDIR | 0o701, 7, false),
        (S_IFDIR | 0o1777, 7, false), (S_IFDIR | 0o700, 8, false), (S_IFLNK | 0o777, 7, false),
        (S_IFREG | 0o600, 7, false),
    ])
    func aFolderThatOthersCanAccessIsRefused(mode: mode_t, owner: UInt32, isGood: Bool) {
        #expect((SocketFolder.problem(mode: mode, owner: owner, uid: 7) == nil) == isGood)
    }

    @Test func aFolderBehindALinkIsRefused() {
        symlink(folder.path, "\(folder.path)/link")
        guard case .folderNotUsable(_, let reason)? = failure(folder.location("link/s")) else {
            Issue.record("a link was followed")
            return
        }
        #expect(reason.contains("link"))
    }

    /// A user who can write to the parent can replace the directory.
    @Test func aDirectoryBelowOneThatOthersCanWriteToIsRefused() {
        chmod(folder.path, 0o777)
        #expect(
            failure(folder.location("deep/s"))
                == .folderReplaceable(folder: folder.path, reason: "can be written by other users (mode 0777)"))
        #expect(access("\(folder.path)/deep", F_OK) != 0)
        // This is the mode of /tmp, which contains all these directories.
        chmod(folder.path, 0o1777)
        #expect(failure(folder.location("deep/s")) == nil)
    }

    @Test func aDirectoryThatOthersCanWriteToIsRefusedForTheServiceManagersSocket() throws {
        let own = try ListeningSocket(at: folder.location())
        chmod(folder.path, 0o770)
        #expect(throws: SocketFailure.self) { _ = try ListeningSocket(inherited: own.descriptor).descriptor }
        chmod(folder.path, 0o755)
        #expect(try ListeningSocket(inherited: own.descriptor).descriptor == own.descriptor)
        close(own.descriptor)
    }

    @Test func aPathThatDoesNotFitAnAddressIsRefused() {
        let long = folder.location(String(repeating: "x", count: 120))
        #expect(failure(long) == .pathTooLong(path: long.path, limit: 107))
    }

    @Test func onlyItsOwnFileIsRemoved() throws {
        let socket = try ListeningSocket(at: folder.location())
        unlink(folder.location().path)
        close(open(folder.location().path, O_CREAT | O_WRONLY, 0o600))
        socket.removeFile()
        #expect(access(folder.location().path, F_OK) == 0)
        close(socket.descriptor)
    }

    @Test func theServiceManagersSocketIsTakenOnlyIfItIsOne() throws {
        let own = try ListeningSocket(at: folder.location()).descriptor
        #expect(try ListeningSocket(inherited: own).descriptor == own)
        let connected = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #expect(throws: SocketFailure.self) { _ = try ListeningSocket(inherited: connected).descriptor }
        close(connected)
        close(own)
    }
}

@Suite struct SocketLocationTests {
    private func path(_ explicit: String? = nil, _ variables: [String: String]) -> String {
        SocketLocation(explicit: explicit, environment: { variables[$0] }, uid: 7).path
    }

    @Test func theSocketPathComesFromArgumentEnvironmentOrDefault() {
        let all = ["WATCHWORD_SOCKET": "/w", "XDG_RUNTIME_DIR": "/x"]
        #expect(path("/e", all) == "/e")
        #expect(path(nil, all) == "/w")
        #expect(path(nil, ["WATCHWORD_SOCKET": "", "XDG_RUNTIME_DIR": "/x"]) == "/x/watchword/broker.sock")
        #expect(path(nil, ["XDG_RUNTIME_DIR": "relative"]) == "/run/user/7/watchword/broker.sock")
        #expect(path(nil, [:]) == "/run/user/7/watchword/broker.sock")
    }

    @Test func theFolderIsTheParentOfTheSocket() {
        #expect(SocketLocation(explicit: "/a/b/s", environment: { _ in nil }, uid: 7).folder == "/a/b")
        #expect(SocketLocation(explicit: "/s", environment: { _ in nil }, uid: 7).folder == "/")
        #expect(SocketLocation(explicit: "s", environment: { _ in nil }, uid: 7).folder == ".")
    }
}
