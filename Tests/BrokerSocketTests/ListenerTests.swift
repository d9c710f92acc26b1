import Glibc
import Synchronization
import TestServers
import Testing
import WatchwordProtocol

@testable import BrokerSocket

@Suite(.timed) struct ListenerTests {
    private let folder = PrivateFolder()
    private let service = RecordingService()
    private let failures = Failures()
    private let quick = Listener.Limits(fileCheck: .milliseconds(5))

    private func canTalk() -> Bool {
        guard let client = try? RawClient(folder.location()) else { return false }
        client.send("hello\n")
        return client.receive() == "hello\n"
    }

    @Test func aRemovedSocketFileIsCreatedAgain() async throws {
        try await withServer(service, ListeningSocket(at: folder.location()), listening: quick) { _ in
            let client = try RawClient(folder.location())
            unlink(folder.location().path)
            #expect(await eventually { canTalk() })
            client.send("still there\n")
            #expect(client.receive() == "still there\n")
        }
        #expect(access(folder.location().path, F_OK) != 0)
    }

    @Test func aRemovedDirectoryIsCreatedAgain() async throws {
        let location = folder.location("deep/s")
        try await withServer(service, ListeningSocket(at: location), listening: quick) { _ in
            for name in ["deep/s", "deep/s.lock"] { unlink("\(folder.path)/\(name)") }
            rmdir("\(folder.path)/deep")
            #expect(await eventually { (try? RawClient(location)) != nil })
        }
    }

    @Test func aSocketThatAnotherProcessListensOnIsLeftAlone() async throws {
        let location = folder.location()
        let other = try ListeningSocket(at: folder.location("deep/s"))
        try await withServer(service, ListeningSocket(at: location), listening: quick, onFailure: failures.note) { _ in
            rename("\(folder.path)/deep/s", location.path)
            #expect(await eventually { !failures.all.isEmpty })
        }
        #expect(failures.all == [.alreadyRunning(path: location.path, pid: nil)])
        #expect((try? RawClient(location)) != nil)
        close(other.descriptor)
    }

    @Test func theServiceManagersSocketIsNotCreatedAgain() async throws {
        let made = try ListeningSocket(at: folder.location())
        let inherited = try ListeningSocket(inherited: dup(made.descriptor))
        try await withServer(service, inherited, listening: quick, onFailure: failures.note) { _ in
            #expect(canTalk())
            unlink(folder.location().path)
            #expect(await eventually { !failures.all.isEmpty })
        }
        #expect(failures.all == [.fileLost(path: folder.location().path)])
        close(made.descriptor)
    }
}

/// The failures that a server has reported.
private final class Failures: Sendable {
    private let list = Mutex<[SocketFailure]>([])

    var all: [SocketFailure] { list.withLock { $0 } }

    @Sendable func note(_ failure: SocketFailure) { list.withLock { $0.append(failure) } }
}
