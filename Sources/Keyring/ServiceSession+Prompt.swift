internal import CSecret
internal import WatchwordCore

/// The prompts of the Secret Service, which the keyring shows as windows.
extension ServiceSession {
    private static let promptInterface = "org.freedesktop.Secret.Prompt"
    private static let dismissMilliseconds: gint = 500

    /// The results of the two signals of a prompt. Used on the keyring's thread only, whose main context delivers them.
    private final class Outcome {
        /// `(bv)`: whether the window was dismissed, and the result.
        var completed: Variant?
        var isLost = false
    }

    /// Shows the window of `prompt`, waits until the user has closed it, and returns its result, a variant in a variant.
    ///
    /// - Throws: `.dismissed` if the user cancels; `.lost` if the service exits. If the call ends first, closes the window and
    ///   throws the cause of the call.
    func complete(_ prompt: String, _ call: KeyringCall) throws(KeyringFailure) -> Variant {
        let outcome = Outcome()
        let user = Unmanaged.passUnretained(outcome).toOpaque()
        let completion = g_dbus_connection_signal_subscribe(
            connection, owner, Self.promptInterface, "Completed", prompt, nil, G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, _, parameters, user in
                guard let parameters, let user else { return }
                Unmanaged<Outcome>.fromOpaque(user).takeUnretainedValue().completed = Variant(
                    taking: g_variant_ref(parameters))
            }, user, nil)
        let end = g_dbus_connection_signal_subscribe(
            connection, "org.freedesktop.DBus", "org.freedesktop.DBus", "NameOwnerChanged", "/org/freedesktop/DBus",
            owner, G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, _, _, user in
                guard let user else { return }
                Unmanaged<Outcome>.fromOpaque(user).takeUnretainedValue().isLost = true
            }, user, nil)
        defer {
            // This is the thread of the main context, so no handler runs after this and `outcome` may be released.
            g_dbus_connection_signal_unsubscribe(connection, completion)
            g_dbus_connection_signal_unsubscribe(connection, end)
            withExtendedLifetime(outcome) {}
        }
        if case .failure(let error) = send(prompt, Self.promptInterface, "Prompt", [.name("")], reply: "()", call) {
            // The window may have been shown anyway.
            dismiss(prompt)
            throw error.failure(call)
        }
        while outcome.completed == nil {
            if call.isOver {
                dismiss(prompt)
                throw call.cause
            }
            if outcome.isLost || g_dbus_connection_is_closed(connection) != 0 { throw .lost }
            // Returns on a signal, on the end of the connection, and on the end of the call.
            g_main_context_iteration(context, gboolean(1))
        }
        guard let parts = outcome.completed?.children, parts.count == 2, let isDismissed = parts[0].flag else {
            throw .badReply("Prompt")
        }
        if isDismissed { throw .dismissed }
        return parts[1]
    }

    /// Closes the window of `prompt`. Waits briefly for the reply, because the caller may close the connection next, which
    /// would drop an unsent request.
    func dismiss(_ prompt: String) {
        let reply = g_dbus_connection_call_sync(
            connection, owner, prompt, Self.promptInterface, "Dismiss", nil, nil, G_DBUS_CALL_FLAGS_NO_AUTO_START,
            Self.dismissMilliseconds, nil, nil)
        if let reply { g_variant_unref(reply) }
    }
}
