import BrokerSocket
import Glibc
import Synchronization

/// The reason for which the service ends by itself, passed from the event loop to the main thread.
final class ServiceEnd: Sendable {
    private let first = Mutex<SocketFailure?>(nil)

    /// `nil` where the service was told to stop.
    var failure: SocketFailure? { first.withLock { $0 } }

    /// Notes why, and ends the process as SIGTERM does: the main thread waits for signals.
    @Sendable func fail(_ failure: SocketFailure) {
        first.withLock { $0 = $0 ?? failure }
        kill(getpid(), SIGTERM)
    }
}
