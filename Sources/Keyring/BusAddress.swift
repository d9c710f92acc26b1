internal import CSecret
internal import Glibc

/// Where the session's message bus is.
enum BusAddress {
    /// From the environment, or the socket at its usual place. `nil` where there is neither: GIO would start a bus
    /// (`dbus-launch`), on which there is no keyring of the user.
    static func ofSession(_ environment: (String) -> String? = BusAddress.environment) -> String? {
        if let address = environment("DBUS_SESSION_BUS_ADDRESS") {
            return address.hasPrefix("autolaunch:") ? nil : address
        }
        guard let folder = environment("XDG_RUNTIME_DIR") else { return nil }
        let path = folder + "/bus"
        guard access(path, F_OK) == 0, let escaped = g_dbus_address_escape_value(path) else { return nil }
        defer { g_free(escaped) }
        return "unix:path=" + String(cString: escaped)
    }

    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}
