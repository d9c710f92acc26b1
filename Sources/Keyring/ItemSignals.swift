internal import CSecret
internal import WatchwordCore

/// The signals about items that one instance of the Secret Service sends on a connection to the bus.
///
/// Only used on the keyring's thread: its main context delivers them.
final class ItemSignals {
    var watch = KeyringWatch()
    /// Which items there are was not asked yet.
    var isUntaught = true
    private let onSignal: @Sendable () -> Void
    private let begin = ContinuousClock.now
    private var subscription: guint = 0

    /// - Parameter onSignal: runs when there is something to look at.
    init(_ connection: OpaquePointer, of owner: String, onSignal: @escaping @Sendable () -> Void) {
        self.onSignal = onSignal
        subscription = g_dbus_connection_signal_subscribe(
            connection, owner, ServiceSession.collectionInterface, nil, nil, nil, G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, name, parameters, user in
                guard let name, let parameters, let user else { return }
                Unmanaged<ItemSignals>.fromOpaque(user).takeUnretainedValue().note(
                    String(cString: name), Variant(taking: g_variant_ref(parameters)))
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
    }

    /// After this no handler runs any more.
    func end(_ connection: OpaquePointer) { g_dbus_connection_signal_unsubscribe(connection, subscription) }

    var now: Duration { begin.duration(to: .now) }

    private func note(_ name: String, _ parameters: Variant) {
        let kind: KeyringWatch.Signal.Kind
        switch name {
        case "ItemCreated": kind = .created
        case "ItemChanged": kind = .changed
        case "ItemDeleted": kind = .deleted
        default: return
        }
        guard parameters.type == "(o)", let item = parameters.children.first?.text else { return }
        watch.note(KeyringWatch.Signal(kind, item), now: now)
        onSignal()
    }
}

extension ServiceSession {
    /// Does `work`, which changes an item, and tells its signals from those that others cause.
    /// - Parameter item: the item that was changed, and whether it is there now; `nil` where none was.
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

    /// The bus sends signals and replies in the order in which the service did: those before the last reply are here.
    private func deliverSignals() {
        while g_main_context_iteration(context, 0) != 0 {}
    }

    /// Looks at what others have changed since the last time, and reports it.
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
