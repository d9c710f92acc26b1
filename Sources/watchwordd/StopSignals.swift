import Glibc

/// SIGTERM and SIGINT, waited for by the main thread, so that no code runs in a signal handler.
struct StopSignals {
    private var set = sigset_t()

    /// Blocks them in this thread and in all that it starts from now on: to be made before any other thread.
    init() {
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Returns with the first signal to stop. From then on the next one ends the process at once, as it does by default.
    func waitForFirst() {
        var set = set
        var number: Int32 = 0
        // SIGHUP is for reading the settings anew, and there are none yet.
        repeat { number = 0 } while sigwait(&set, &number) != 0 || number == SIGHUP
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }
}
