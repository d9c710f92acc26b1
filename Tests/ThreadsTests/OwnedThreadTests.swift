import Dispatch
import Glibc
import Synchronization
import Testing
import Threads

@Suite struct OwnedThreadTests {
    /// The thread on which a body ran.
    private final class Note: Sendable {
        let thread = Mutex<pthread_t?>(nil)

        func take() { thread.withLock { $0 = pthread_self() } }
    }

    @Test func runsItsBodyOnAnotherThread() throws {
        let note = Note()
        try OwnedThread { note.take() }.join()
        let ran = try #require(note.thread.withLock { $0 })
        #expect(pthread_equal(ran, pthread_self()) == 0)
    }

    @Test func releasesItsBodyWhenItEnds() throws {
        var note: Note? = Note()
        weak let observed = note
        try OwnedThread { [note] in note?.take() }.join()
        note = nil
        #expect(observed == nil)
    }

    @Test func joinsWithinALimit() throws {
        #expect(try OwnedThread {}.join(within: 60))
    }

    @Test func leavesAThreadThatHangs() throws {
        let gate = DispatchSemaphore(value: 0)
        #expect(try !OwnedThread { gate.wait() }.join(within: 1))
        gate.signal()
    }

    @Test func detachesAThreadThatRuns() throws {
        let (gate, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try OwnedThread {
            gate.wait()
            done.signal()
        }.detach()
        gate.signal()
        done.wait()
    }

    @Test func runsADetachedThread() {
        let done = DispatchSemaphore(value: 0)
        #expect(OwnedThread.detach { done.signal() })
        done.wait()
    }
}
