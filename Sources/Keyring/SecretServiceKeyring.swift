internal import Dispatch
internal import Synchronization
public import WatchwordCore
public import WatchwordProtocol

/// The keyring of the user's session, accessed through the Secret Service (GNOME Keyring, KWallet, KeePassXC) on the session
/// bus.
///
/// All calls run on one dedicated thread. The time limit of a call includes the time in the queue. Secrets are sent over the
/// bus encrypted, or not at all. The first call connects to the service; the connection is reused, and opened again after a
/// failure, so that a service that starts or restarts later is found.
///
/// Completions run on that thread, on a Dispatch thread, or in `shutDown`. They must be short, because they delay the next
/// call.
public final class SecretServiceKeyring: KeyringPort, Sendable {
    private let thread: KeyringThread
    private let observer: KeyringObserver
    private let limit: Mutex<Duration>
    private var callLimit: Duration { limit.withLock { $0 } }
    private let windowLimit: Duration

    /// The first call starts the thread; `shutDown` ends it.
    /// - Parameters:
    ///   - callLimit: the time limit of a call, as long as the keyring shows no window.
    ///   - windowLimit: how long `store` waits for the user after a window is shown.
    ///   - busAddress: a D-Bus server address. `nil` for the one in the environment: `DBUS_SESSION_BUS_ADDRESS`, or else the
    ///     socket `bus` in `XDG_RUNTIME_DIR`.
    public init(
        callLimit: Duration = Limits.keyringCall, windowLimit: Duration = Limits.challengeDeadline,
        busAddress: String? = nil
    ) {
        limit = Mutex(callLimit)
        self.windowLimit = windowLimit
        let thread = KeyringThread()
        let observer = KeyringObserver(thread)
        (self.thread, self.observer) = (thread, observer)
        thread.setWorker { KeyringWorker(busAddress: busAddress, context: $0, observer: observer) }
    }

    /// Ends the running and the queued calls with `.cancelled`, and returns when the thread has ended. Later calls end in the
    /// same way. Must not be called in a completion. Further calls of this method do nothing.
    public func shutDown() { thread.stop(.shutDown) }

    /// Changes the time limit of the following calls.
    public func setCallLimit(_ limit: Duration) { self.limit.withLock { $0 = limit } }

    public func search(
        _ queries: [[ExactText: ExactText]], withSecrets: Bool, completion: @escaping Completion<[KeyringItem]>
    ) {
        begin(completion) { session, call throws(KeyringFailure) in
            try session.search(queries, withSecrets: withSecrets, call)
        }
    }

    public func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, completion: @escaping Completion<String>
    ) {
        let windowLimit = windowLimit
        begin(completion) { session, call throws(KeyringFailure) in
            try session.changing { () throws(KeyringFailure) in
                try session.store(secret, attributes: attributes, label: label, call) {
                    call.restart(limit: windowLimit)
                }
            } item: {
                ($0, true)
            }
        }
    }

    public func remove(_ id: String, ifSecretIs expected: Secret?, completion: @escaping Completion<Bool>) {
        let windowLimit = windowLimit
        begin(completion) { session, call throws(KeyringFailure) in
            try session.changing { () throws(KeyringFailure) in
                try session.remove(id, ifSecretIs: expected, call) { call.restart(limit: windowLimit) }
            } item: {
                $0 ? (id, false) : nil
            }
        }
    }

    public func setAttributes(
        _ attributes: [ExactText: ExactText], of id: String, completion: @escaping Completion<Void>
    ) {
        begin(completion) { session, call throws(KeyringFailure) in
            try session.changing { () throws(KeyringFailure) in
                try session.setAttributes(attributes, of: id, call)
            } item: {
                (id, true)
            }
        }
    }

    /// Until the service shows its window, the call limit applies if it is shorter than `limit`.
    public func unlock(limit: Duration, completion: @escaping Completion<Void>) {
        let end = ContinuousClock.now + limit
        begin(completion, limit: min(limit, callLimit)) { session, call throws(KeyringFailure) in
            try session.unlock(call) { call.restart(limit: ContinuousClock.now.duration(to: end)) }
        }
    }

    public func observe(_ report: @escaping @Sendable (KeyringChange) -> Void) { observer.set(report) }

    public func check(completion: @escaping Completion<Void>) {
        begin(completion) { session, call throws(KeyringFailure) in try session.check(call) }
    }

    private func begin<Value: Sendable>(
        _ completion: @escaping Completion<Value>, limit: Duration? = nil,
        _ work: @escaping @Sendable (ServiceSession, KeyringCall) throws(KeyringFailure) -> Value
    ) {
        let call = KeyringCall(
            limit: limit ?? callLimit, onCancel: { [thread] in thread.dropFinishedJobs() },
            fail: { completion(.failure($0)) })
        let refusal = thread.post(
            KeyringThread.Job(call: call) { worker in
                let result = Result { () throws(KeyringFailure) in try worker.perform(call, work) }
                if call.claim() { completion(result) }
            })
        // The caller may hold locks that the completion needs, so the completion runs on another thread.
        if let refusal { DispatchQueue.global().async { call.end(refusal) } }
    }
}
