import Glibc

/// The signals to the broker, waited for by the main thread, so that no code runs in a signal handler.
struct ServiceSignals {
    /// What a signal asks for, other than to stop.
    enum Request {
        /// SIGHUP: read the configuration anew.
        case reload
        /// SIGUSR1: forget the session.
        case forget
    }

    private var set = sigset_t()

    /// Blocks them in this thread and in all that it starts from now on: to be made before any other thread.
    init() {
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP, SIGUSR1] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Returns with the first signal to stop. From then on the next one ends the process at once, as it does by default.
    func wait(serve: (Request) throws -> Void) rethrows {
        var set = set
        while true {
            var number: Int32 = 0
            guard sigwait(&set, &number) == 0 else { continue }
            switch number {
            case SIGHUP: try serve(.reload)
            case SIGUSR1: try serve(.forget)
            default:
                pthread_sigmask(SIG_UNBLOCK, &set, nil)
                return
            }
        }
    }
}
