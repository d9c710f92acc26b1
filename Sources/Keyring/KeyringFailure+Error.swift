internal import CSecret
internal import WatchwordCore

/// A GLib error.
struct ServiceError: Error {
    /// The D-Bus name of the error; empty for a local error.
    let name: String
    let message: String
    private let isCancelled: Bool
    private let isTimeout: Bool
    private let isClosed: Bool

    /// Takes ownership of `error`.
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

    /// Whether the error means that the object does not exist. Services that use GDBus, such as gnome-keyring, report "unknown
    /// method".
    var isNoSuchObject: Bool {
        switch name {
        case "org.freedesktop.Secret.Error.NoSuchObject", "org.freedesktop.DBus.Error.UnknownObject",
            "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface":
            true
        default: false
        }
    }

    /// The failure for the caller, if the service existed at the start of `call`.
    func failure(_ call: KeyringCall) -> KeyringFailure {
        if isCancelled { return call.cause }
        if isTimeout { return KeyringFailure(.timedOut, "no reply from the keyring in time") }
        if isClosed { return .lost }
        switch name {
        case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.ServiceUnknown",
            "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.Disconnected",
            "org.freedesktop.Secret.Error.NoSession":
            return .lost
        case "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut":
            return KeyringFailure(.timedOut, "no reply from the keyring in time")
        case "org.freedesktop.Secret.Error.IsLocked": return .locked
        default:
            return KeyringFailure(.refused, "the Secret Service refused the call: \(message.prefix(200))")
        }
    }
}

extension KeyringFailure {
    static let lost = KeyringFailure(.lost, "the Secret Service exited during the call; try again")
    static let locked = KeyringFailure(.locked, "the keyring is locked; unlock it and try again")
    static let dismissed = KeyringFailure(.dismissed, "the keyring's window was closed")
    static let shutDown = KeyringFailure(.cancelled, "the keyring has been shut down")
    static let plainOnly = KeyringFailure(
        .plainOnly, "the Secret Service does not support encrypted sessions, so it is not used; install another one")

    /// The failure if libsecret cannot be loaded. On a session bus there may be a keyring, with a login that a netrc file must
    /// not replace, so that the keyring does not count as absent.
    /// - Parameter reason: the dynamic linker's message.
    static func notLoaded(_ reason: String, hasBus: Bool) -> KeyringFailure {
        KeyringFailure(
            hasBus ? .refused : .absent,
            "cannot load the keyring's library: \(reason); if the package libsecret-1-0 is missing, install it")
    }

    /// - Parameter error: the errno of pthread_create(3).
    static func noThread(_ error: Int32) -> KeyringFailure {
        KeyringFailure(.refused, "cannot start a thread for the keyring (error \(error)); try again")
    }

    static let noDefault = KeyringFailure(
        .refused, "no default keyring; create one, for example with Seahorse, and mark it as the default")
    static let nulInAttribute = KeyringFailure(.refused, "NUL character in an attribute or label")

    /// The failure for a reply that violates the specification.
    static func badReply(_ method: String) -> KeyringFailure {
        KeyringFailure(.refused, "malformed reply from the Secret Service to \(method)")
    }

    static func noSuchItem(_ id: String) -> KeyringFailure {
        KeyringFailure(.refused, "no keyring item \(id.prefix(200))")
    }
}
