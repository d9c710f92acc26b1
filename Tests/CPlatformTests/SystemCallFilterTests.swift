import CPlatform
import Glibc
import TestServers
import TestSystemCalls
import Testing

/// Each test runs in its own process, because a filter cannot be removed.
@Suite(.startsProcess) struct SystemCallFilterTests {
    @Test func otherSystemCallsAreNotPermitted() async {
        await #expect(processExitsWith: .success) {
            // With arguments of 0 these calls fail with another error, or not at all.
            precondition(watchword_test_call_error(0) == EFAULT)
            precondition(watchword_filter_system_calls() == 0)
            var index: Int32 = 0
            while let name = watchword_test_call_name(index) {
                let error = watchword_test_call_error(index)
                precondition(error == EPERM, "\(String(cString: name)) gets through: \(error)")
                index += 1
            }
            precondition(index > 20)
        }
    }

    @Test func theFilterAppliesToExistingThreads() async {
        await #expect(processExitsWith: .success) {
            let ends = UnsafeMutablePointer<Int32>.allocate(capacity: 2)
            precondition(pipe(ends) == 0)
            var thread = pthread_t()
            let status = pthread_create(
                &thread, nil,
                { context in
                    var byte: UInt8 = 0
                    let ends = context!.assumingMemoryBound(to: Int32.self)
                    precondition(read(ends[0], &byte, 1) == 1)
                    precondition(watchword_test_call_error(0) == EPERM)
                    return nil
                }, ends)
            precondition(status == 0)
            precondition(watchword_filter_system_calls() == 0)
            precondition(write(ends[1], "x", 1) == 1)
            pthread_join(thread, nil)
        }
    }

    @Test func aBrokersOwnSystemCallsArePermitted() async {
        await #expect(processExitsWith: .success) {
            precondition(watchword_filter_system_calls() == 0)
            let ends = UnsafeMutablePointer<Int32>.allocate(capacity: 2)
            precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, ends) == 0)
            precondition(write(ends[0], "x", 1) == 1 && open("/dev/null", O_RDONLY) >= 0)
            var thread = pthread_t()
            precondition(pthread_create(&thread, nil, { _ in nil }, nil) == 0)
            pthread_join(thread, nil)
        }
    }
}
