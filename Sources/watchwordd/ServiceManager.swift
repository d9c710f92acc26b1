import BrokerSocket
import EventLoop
import Glibc
import Logging

/// What the service manager that has started this process has given it, and wants to hear. Read before the environment is cleaned.
struct ServiceManager: Sendable {
    let sockets: InheritedSockets?
    private let notifier: ServiceNotifier?
    private let watchdogInterval: Duration?
    /// Why nothing is said to a manager that wants to hear something.
    private let problem: SocketFailure?

    /// - Parameter isStartedByClient: then the environment is that client's, and so is a manager's socket in it.
    init(sockets: InheritedSockets?, isStartedByClient: Bool) {
        let environment: (String) -> String? = { name in getenv(name).map { String(cString: $0) } }
        self.sockets = sockets
        guard !isStartedByClient, let path = environment("NOTIFY_SOCKET") else {
            (notifier, watchdogInterval, problem) = (nil, nil, nil)
            return
        }
        do throws(SocketFailure) {
            notifier = try ServiceNotifier(path: path)
            problem = nil
        } catch {
            notifier = nil
            problem = error
        }
        watchdogInterval = ServiceNotifier.watchdogInterval(environment: environment, pid: getpid())
    }

    func say(_ state: ServiceNotifier.State) { notifier?.say(state) }

    private func sayAlive(_ notifier: ServiceNotifier, every interval: Duration, on loop: EventLoop) {
        notifier.say(.alive)
        LoopTimer(on: loop) { [unowned loop] in sayAlive(notifier, every: interval, on: loop) }.set(in: interval)
    }

    /// Says that the broker lives for as long as `loop`, on which all of it runs, goes round.
    func watch(_ loop: EventLoop, log: Logger) {
        if let problem { log.warning("the service manager is told nothing", metadata: ["reason": "\(problem)"]) }
        guard let notifier, let watchdogInterval else { return }
        sayAlive(notifier, every: watchdogInterval, on: loop)
    }
}
