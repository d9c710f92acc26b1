import BrokerSocket
import EventLoop
import Glibc
import Logging

/// The interface to the service manager that started this process: inherited sockets, notifications and the watchdog.
/// Created before the environment is cleaned.
struct ServiceManager: Sendable {
    let sockets: InheritedSockets?
    private let notifier: ServiceNotifier?
    private let watchdogInterval: Duration?
    /// The reason why a manager that expects notifications cannot be notified, if any.
    private let problem: SocketFailure?

    /// - Parameter isStartedByClient: whether a client started the broker. Then $NOTIFY_SOCKET belongs to the service
    ///   of that client, and is ignored.
    init(sockets: InheritedSockets?, isStartedByClient: Bool) {
        self.sockets = sockets
        guard !isStartedByClient, let path = ProcessEnvironment.text("NOTIFY_SOCKET") else {
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
        watchdogInterval = ServiceNotifier.watchdogInterval(environment: ProcessEnvironment.text, pid: getpid())
    }

    func say(_ state: ServiceNotifier.State) { notifier?.say(state) }

    private func sayAlive(_ notifier: ServiceNotifier, every interval: Duration, on loop: EventLoop) {
        notifier.say(.alive)
        LoopTimer(on: loop) { [unowned loop] in sayAlive(notifier, every: interval, on: loop) }.set(in: interval)
    }

    /// Sends watchdog notifications from `loop`. The whole broker runs on this loop, so they stop when the broker
    /// hangs.
    func watch(_ loop: EventLoop, log: Logger) {
        if let problem { log.warning("cannot notify the service manager", metadata: ["reason": "\(problem)"]) }
        guard let notifier, let watchdogInterval else { return }
        sayAlive(notifier, every: watchdogInterval, on: loop)
    }
}
