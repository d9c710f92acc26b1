import CPlatform
import EventLoop
import Glibc

/// The signals to the broker, read on its loop, so that no code runs in a signal handler.
final class ServiceSignals: ReadinessHandler {
    /// What a signal asks for.
    enum Request {
        /// SIGHUP: read the configuration anew.
        case reload
        /// SIGUSR1: forget the session.
        case forget
        /// SIGTERM and SIGINT. From then on the next one ends the process at once, as it does by default.
        case stop
    }

    private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGUSR1]

    private let descriptor: Int32
    private let serve: (Request) -> Void

    /// Blocks them in this thread and in all that it starts from now on: to be called before any other thread is there.
    static func block() { change(SIG_BLOCK) }

    private static func change(_ how: Int32) {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        pthread_sigmask(how, &set, nil)
    }

    /// - Parameter serve: called on `loop`, which holds this.
    init(on loop: EventLoop, serve: @escaping (Request) -> Void) throws {
        descriptor = watchword_signal_descriptor(Self.numbers, Self.numbers.count)
        self.serve = serve
        guard descriptor >= 0, loop.watch(descriptor, .readable, self) else {
            throw StartFailure("Signals cannot be waited for: \(String(cString: strerror(errno))).")
        }
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        switch watchword_read_interrupt(descriptor) {
        case SIGHUP: serve(.reload)
        case SIGUSR1: serve(.forget)
        case SIGTERM, SIGINT:
            Self.change(SIG_UNBLOCK)
            serve(.stop)
        default: break
        }
    }
}
