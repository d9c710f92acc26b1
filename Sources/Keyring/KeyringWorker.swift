internal import CSecret
internal import WatchwordCore

/// The state of the keyring's thread between calls: the session with the service.
///
/// The session is reused, because some services (KeePassXC) ask the user once for each connection. It is opened again after a
/// failure that may have broken it, and when the service's bus name has a new owner.
final class KeyringWorker {
    private let busAddress: String?
    private let context: OpaquePointer
    private let observer: KeyringObserver
    private var session: ServiceSession?

    /// - Parameters:
    ///   - busAddress: the address of the message bus; `nil` to read it from the environment at every connection.
    ///   - context: the thread's main context, which outlives the worker.
    ///   - observer: receives the changes by other programs while a session is open.
    init(busAddress: String?, context: OpaquePointer, observer: KeyringObserver) {
        self.busAddress = busAddress
        self.context = context
        self.observer = observer
    }

    /// Processes the signals of the session, if there is one.
    func reportChanges(_ call: KeyringCall, _ report: (KeyringChange) -> Void) {
        guard session != nil else { return }
        _ = try? perform(call) { session, call throws(KeyringFailure) in try session.reportChanges(call, report) }
    }

    /// Performs `work` with a live session.
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
        // The scheduled call queries the existing items.
        observer.schedule()
        return session
    }

    func close() {
        session?.close()
        session = nil
    }
}
