internal import CSecret
internal import WatchwordCore

/// What the keyring's thread has between two calls: the way to the service, as long as it works.
///
/// Kept, because some services (KeePassXC) ask the user once for each connection; made again after every failure that leaves
/// doubts, and when the name on the bus has another owner.
final class KeyringWorker {
    private let busAddress: String?
    private let context: OpaquePointer
    private let observer: KeyringObserver
    private var session: ServiceSession?

    /// - Parameters:
    ///   - busAddress: where the message bus is; `nil` looks into the environment at every connecting.
    ///   - context: the thread's main context, which outlives the worker.
    ///   - observer: who hears what other programs change, as long as a session is alive.
    init(busAddress: String?, context: OpaquePointer, observer: KeyringObserver) {
        self.busAddress = busAddress
        self.context = context
        self.observer = observer
    }

    /// Looks at the signals of the session, if it is alive still.
    func reportChanges(_ call: KeyringCall, _ report: (KeyringChange) -> Void) {
        guard session != nil else { return }
        _ = try? perform(call) { session, call throws(KeyringFailure) in try session.reportChanges(call, report) }
    }

    /// Does `work` with a session that is alive.
    func perform<Value>(
        _ call: KeyringCall, _ work: (ServiceSession, KeyringCall) throws(KeyringFailure) -> Value
    ) throws(KeyringFailure) -> Value {
        do throws(KeyringFailure) {
            return try work(try liveSession(call), call)
        } catch {
            switch error.kind {
            case .locked, .dismissed: break
            case .absent, .timedOut, .lost, .plainOnly, .cancelled, .refused: close()
            }
            throw error
        }
    }

    private func liveSession(_ call: KeyringCall) throws(KeyringFailure) -> ServiceSession {
        if let session, session.isAlive(call) { return session }
        close()
        let session = try ServiceSession(
            busAddress: busAddress, context: context, onSignal: { [observer] in observer.schedule() }, call)
        self.session = session
        // Which items there are.
        observer.schedule()
        return session
    }

    func close() {
        session?.close()
        session = nil
    }
}
