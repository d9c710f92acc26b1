internal import CSecret
internal import WatchwordCore

/// The signals about items that one instance of the Secret Service sends on a connection to the bus.
///
/// Used on the keyring's thread only, whose main context delivers the signals.
final class ItemSignals {
    var watch = KeyringWatch()
    /// Whether the existing items have not been queried yet.
    var isUntaught = true
    private let onSignal: @Sendable () -> Void
    private let begin = ContinuousClock.now
    private var subscription: guint = 0

    /// - Parameter onSignal: runs when a signal was received.
    init(_ connection: OpaquePointer, of owner: String, onSignal: @escaping @Sendable () -> Void) {
        self.onSignal = onSignal
        subscription = g_dbus_connection_signal_subscribe(
            connection, owner, ServiceSession.collectionInterface, nil, nil, nil, G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, name, parameters, user in
                guard let name, let parameters, let user else { return }
                Unmanaged<ItemSignals>.fromOpaque(user).takeUnretainedValue().receive(
                    String(cString: name), Variant(taking: g_variant_ref(parameters)))
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
    }

    /// Ends the subscription; after this no handler runs.
    func end(_ connection: OpaquePointer) { g_dbus_connection_signal_unsubscribe(connection, subscription) }

    var now: Duration { begin.duration(to: .now) }

    private func receive(_ name: String, _ parameters: Variant) {
        let kind: KeyringWatch.Signal.Kind
        switch name {
        case "ItemCreated": kind = .created
        case "ItemChanged": kind = .changed
        case "ItemDeleted": kind = .deleted
        default: return
        }
        guard parameters.type == "(o)", let item = parameters.children.first?.text else { return }
        watch.record(KeyringWatch.Signal(kind, item), now: now)
        onSignal()
    }
}

extension ServiceSession {
    /// Performs `work`, which changes an item, and does not report the resulting signals as changes by other programs.
    /// - Parameter item: returns the item that was changed, and whether it exists now; `nil` if none was changed.
    func changing<Value>(
        _ work: () throws(KeyringFailure) -> Value, item: (Value) -> (id: String, isThere: Bool)?
    ) throws(KeyringFailure) -> Value {
        deliverSignals()
        signals.watch.beginOwnChange()
        do throws(KeyringFailure) {
            let value = try work()
            deliverSignals()
            let changed = item(value)
            signals.watch.endOwnChange(of: changed?.id, isThere: changed?.isThere ?? false, now: signals.now)
            return value
        } catch {
            signals.watch.endOwnChange(of: nil, isThere: false, now: signals.now)
            throw error
        }
    }

    /// Delivers all signals that the service sent before its last reply: the bus preserves the order of signals and replies.
    private func deliverSignals() {
        while g_main_context_iteration(context, 0) != 0 {}
    }

    /// Reports the changes by other programs since the last call.
    func reportChanges(_ call: KeyringCall, _ report: (KeyringChange) -> Void) throws(KeyringFailure) {
        if signals.isUntaught {
            for query in KeyringWatch.queries {
                let (unlocked, locked) = try paths(query, call)
                signals.watch.learn(unlocked: unlocked, locked: locked)
            }
            signals.isUntaught = false
        }
        while let signal = signals.watch.next() {
            let item = signal.kind == .deleted ? nil : try item(signal.item, call)
            if let change = signals.watch.change(signal, item) { report(change) }
        }
    }
}
