import Glibc
import TestServers
import Testing

@testable import BrokerSocket

@Suite(.timed) struct ServiceNotifierTests {
    private let folder = PrivateFolder()

    /// Returns the manager's socket at `name`: a path, or bytes after a NUL byte.
    private func manager(_ name: [UInt8]) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + name.count)
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        #expect(bound == 0)
        return descriptor
    }

    private func heard(_ descriptor: Int32) -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }

    @Test func aPathAddressReceivesNotifications() throws {
        let path = "\(folder.path)/notify"
        let end = manager(Array(path.utf8))
        let notifier = try ServiceNotifier(path: path)
        #expect(notifier.say(.ready(status: "Listening.")))
        #expect(heard(end) == "READY=1\nSTATUS=Listening.")
        #expect(notifier.say(.alive))
        #expect(heard(end) == "WATCHDOG=1")
        close(end)
        // A process forked by another test holds the socket open until it calls exec.
        let limit = ContinuousClock.now + .seconds(10)
        while notifier.say(.alive), .now < limit { usleep(1000) }
        #expect(!notifier.say(.alive), "the manager has closed its socket")
    }

    @Test func anAbstractAddressReceivesNotifications() throws {
        let name = "watchword-tests/\(getpid())"
        let end = manager([0] + Array(name.utf8))
        #expect(try ServiceNotifier(path: "@\(name)").say(.stopping(status: "Done.")))
        #expect(heard(end) == "STOPPING=1\nSTATUS=Done.")
        close(end)
    }

    @Test func aManagerThatDoesNotReadBlocksNothing() throws {
        let path = "\(folder.path)/notify"
        let end = manager(Array(path.utf8))
        let notifier = try ServiceNotifier(path: path)
        let taken = (0..<100_000).prefix { _ in notifier.say(.alive) }.count
        #expect(taken > 0 && taken < 100_000)
        close(end)
    }

    @Test(arguments: [
        "", "relative", "@", "/" + String(repeating: "x", count: 107), "@" + String(repeating: "x", count: 108),
    ])
    func invalidAddressesAreRefused(path: String) {
        #expect(throws: SocketFailure.notificationSocketNotUsable) { try ServiceNotifier(path: path) }
    }

    @Test(arguments: ["/" + String(repeating: "x", count: 106), "@" + String(repeating: "x", count: 107)])
    func addressesOfTheMaximumLengthAreAccepted(path: String) throws {
        #expect(try !ServiceNotifier(path: path).say(.alive))
    }

    @Test func aReloadNotificationHasItsStartTime() {
        let text = ServiceNotifier.text(.reloading, monotonicMicroseconds: 17)
        #expect(text.split(separator: "\n").prefix(2) == ["RELOADING=1", "MONOTONIC_USEC=17"])
    }

    @Test func aStatusIsOneLine() {
        let text = ServiceNotifier.text(.ready(status: "a\nMAINPID=1\r"), monotonicMicroseconds: 0)
        #expect(text == "READY=1\nSTATUS=a MAINPID=1 ")
    }

    @Test(arguments: [
        (["WATCHDOG_USEC": "3000"], Duration.microseconds(1500)),
        (["WATCHDOG_USEC": "3000", "WATCHDOG_PID": "42"], .microseconds(1500)),
        (["WATCHDOG_USEC": "3000", "WATCHDOG_PID": "43"], nil), (["WATCHDOG_USEC": "3000", "WATCHDOG_PID": "x"], nil),
        (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": "-5"], nil), (["WATCHDOG_USEC": "x"], nil), ([:], nil),
    ])
    func theWatchdogIsNotifiedAtTwiceTheRequestedRate(variables: [String: String], interval: Duration?) {
        #expect(ServiceNotifier.watchdogInterval(environment: { variables[$0] }, pid: 42) == interval)
    }
}
