internal import Dispatch
internal import Synchronization
public import WatchwordCore
public import WatchwordProtocol

/// The keyring of the user's session over the Secret Service (GNOME Keyring, KWallet, KeePassXC), on the session's message bus.
///
/// All calls happen on one thread of its own. A call's time counts from when it is made, waiting for its turn included. Secrets
/// cross the bus encrypted, or not at all. The way to the service is made with the first call, kept while it works, and made
/// again after a failure: a service that comes later, or comes back, is found.
///
/// Completions run on that thread, on one of Dispatch, or in `shutDown`. They are to be short: the next call waits for them.
public final class SecretServiceKeyring: KeyringPort, Sendable {
    private let thread: KeyringThread
    private let observer: KeyringObserver
    private let limit: Mutex<Duration>
    private var callLimit: Duration { limit.withLock { $0 } }
    private let windowLimit: Duration

    /// Starts the thread; `shutDown` ends it. Nothing is asked of the bus yet.
    /// - Parameters:
    ///   - callLimit: the most a call may take, as long as the keyring shows no window.
    ///   - windowLimit: the most `store` waits for the user from when a window comes up.
    ///   - busAddress: the message bus, as D-Bus writes addresses. `nil` for that of the environment: `DBUS_SESSION_BUS_ADDRESS`,
    ///     or else the socket `bus` in `XDG_RUNTIME_DIR`.
    public init(
        callLimit: Duration = Limits.keyringCall, windowLimit: Duration = Limits.challengeDeadline,
        busAddress: String? = nil
    ) {
        limit = Mutex(callLimit)
        self.windowLimit = windowLimit
        let thread = KeyringThread()
        let observer = KeyringObserver(thread)
        (self.thread, self.observer) = (thread, observer)
        thread.start { KeyringWorker(busAddress: busAddress, context: $0, observer: observer) }
    }

    /// Ends what runs and what waits with `.cancelled`, and returns when the thread is gone. Further calls end in the same way.
    /// Not to be called in a completion. More calls do nothing.
    public func shutDown() { thread.stop(.shutDown) }

    /// Changes the most that a call may take, from the next call on.
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
        begin(completion) { session, call throws(KeyringFailure) in
            try session.changing { () throws(KeyringFailure) in
                try session.remove(id, ifSecretIs: expected, call)
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

    /// A service that does not even show its window is given up after the limit of any other call.
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
            limit: limit ?? callLimit, onCancel: { [thread] in thread.forgetWhatIsOver() },
            fail: { completion(.failure($0)) })
        let isTaken = thread.post(
            KeyringThread.Job(call: call) { worker in
                let result = Result { () throws(KeyringFailure) in try worker.perform(call, work) }
                if call.claim() { completion(result) }
            })
        // Elsewhere, as always: a completion in the middle of the call could find its caller's locks held.
        if !isTaken { DispatchQueue.global().async { call.end(.shutDown) } }
    }
}
