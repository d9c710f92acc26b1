internal import CCurl
internal import CPlatform
internal import Glibc
internal import WatchwordCore

/// Ends the sleep of the engine's thread from another one: an eventfd(2), which takes one system call to ring and one to
/// silence. (libcurl's own, curl_multi_wakeup(3), is a pair of sockets, takes three, and goes away with its handle.)
///
/// Lives as long as anybody may ring it.
final class Alarm: Sendable {
    private let descriptor: Int32

    /// - Throws: `TransferFailure` when there is no descriptor left.
    init() throws(TransferFailure) {
        descriptor = watchword_event_descriptor()
        guard descriptor >= 0 else {
            throw TransferFailure(.internalError, "No descriptor to wake the transfer engine with (error \(errno)).")
        }
    }

    deinit { close(descriptor) }

    /// What to poll for; whoever has seen it ready silences it.
    var waited: curl_waitfd { curl_waitfd(fd: descriptor, events: CShort(CURL_WAIT_POLLIN), revents: 0) }

    /// May be called on every thread.
    func ring() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }

    func silence() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout.size(ofValue: count))
    }
}
