import CPlatform
import EventLoop
import Glibc

/// Receives signals on the broker's loop through a signalfd(2), so that no signal handler is needed.
final class ServiceSignals: ReadinessHandler {
    /// The action requested by a signal.
    enum Request {
        /// SIGHUP: reload the configuration.
        case reload
        /// SIGUSR1: clear the session cache.
        case forget
        /// SIGTERM and SIGINT: stop. A second signal then terminates the process at once, by its default action.
        case stop

        /// `nil` for other signals.
        init?(signal: Int32) {
            switch signal {
            case SIGHUP: self = .reload
            case SIGUSR1: self = .forget
            case SIGTERM, SIGINT: self = .stop
            default: return nil
            }
        }
    }

    private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGUSR1]

    private let descriptor: Int32
    private let serve: (Request) -> Void

    /// Blocks the signals in this thread and in threads that it starts later. To be called before other threads start.
    static func block() { change(SIG_BLOCK, numbers) }

    private static func change(_ how: Int32, _ numbers: [Int32]) {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        pthread_sigmask(how, &set, nil)
    }

    /// - Parameter serve: called on `loop`, which retains this object.
    init(on loop: EventLoop, serve: @escaping (Request) -> Void) throws {
        descriptor = watchword_signal_descriptor(Self.numbers, Self.numbers.count)
        self.serve = serve
        guard descriptor >= 0, loop.watch(descriptor, .readable, self) else {
            throw StartFailure("cannot wait for signals: \(String(cString: strerror(errno)))")
        }
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        guard let request = Request(signal: watchword_read_interrupt(descriptor)) else { return }
        if request == .stop { Self.change(SIG_UNBLOCK, [SIGTERM, SIGINT]) }
        serve(request)
    }
}
