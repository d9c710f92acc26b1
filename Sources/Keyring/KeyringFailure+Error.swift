internal import CSecret
internal import WatchwordCore

/// An error of GLib, owned.
struct ServiceError: Error {
    /// The name of the error on D-Bus; empty for an error of this side.
    let name: String
    let message: String
    private let isCancelled: Bool
    private let isTimeout: Bool
    private let isClosed: Bool

    /// Takes over `error`.
    init(taking error: UnsafeMutablePointer<GError>?) {
        guard let error else {
            (name, message, isCancelled, isTimeout, isClosed) = ("", "no reason given", false, false, false)
            return
        }
        defer { g_error_free(error) }
        let remote = g_dbus_error_get_remote_error(error)
        name = remote.map { String(cString: $0) } ?? ""
        g_free(remote)
        g_dbus_error_strip_remote_error(error)
        message = String(cString: error.pointee.message)
        let code = error.pointee.domain == g_io_error_quark() ? error.pointee.code : -1
        isCancelled = code == Int32(G_IO_ERROR_CANCELLED.rawValue)
        isTimeout = code == Int32(G_IO_ERROR_TIMED_OUT.rawValue)
        isClosed = code == Int32(G_IO_ERROR_CLOSED.rawValue) || code == Int32(G_IO_ERROR_BROKEN_PIPE.rawValue)
    }

    /// The object that was asked is not there. Services on GDBus, such as gnome-keyring, say "unknown method".
    var isNoSuchObject: Bool {
        switch name {
        case "org.freedesktop.Secret.Error.NoSuchObject", "org.freedesktop.DBus.Error.UnknownObject",
            "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface":
            true
        default: false
        }
    }

    /// What to tell the caller, where there was a service at the beginning of `call`.
    func failure(_ call: KeyringCall) -> KeyringFailure {
        if isCancelled { return call.cause }
        if isTimeout { return KeyringFailure(.timedOut, "The keyring did not answer in time.") }
        if isClosed { return .lost }
        switch name {
        case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.ServiceUnknown",
            "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.Disconnected",
            "org.freedesktop.Secret.Error.NoSession":
            return .lost
        case "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut":
            return KeyringFailure(.timedOut, "The keyring did not answer in time.")
        case "org.freedesktop.Secret.Error.IsLocked": return .locked
        default:
            return KeyringFailure(.refused, "The keyring refused: \(message.prefix(200))")
        }
    }
}

extension KeyringFailure {
    static let lost = KeyringFailure(.lost, "The keyring's service ended in the middle of the call. Try again.")
    static let locked = KeyringFailure(.locked, "The keyring is locked. Unlock it and try again.")
    static let dismissed = KeyringFailure(.dismissed, "The keyring's window was closed.")
    static let shutDown = KeyringFailure(.cancelled, "The keyring has been shut down.")
    static let plainOnly = KeyringFailure(
        .plainOnly, "The keyring's service gives secrets only readable on the bus; it is not used.")
    static let noDefault = KeyringFailure(
        .refused, "There is no default keyring. Make one, for example with Seahorse, and mark it as the default.")
    static let hasZero = KeyringFailure(.refused, "Attributes and labels cannot have NUL characters.")

    /// For a reply that does not follow the specification.
    static func badReply(_ method: String) -> KeyringFailure {
        KeyringFailure(.refused, "The keyring's reply to \(method) cannot be understood.")
    }

    static func noSuchItem(_ id: String) -> KeyringFailure {
        KeyringFailure(.refused, "The keyring has no item \(id.prefix(200)).")
    }
}
