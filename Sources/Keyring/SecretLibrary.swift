internal import CSecretLoader
internal import Glibc
internal import WatchwordCore

/// libsecret with GIO, GObject and GLib, which are loaded when they are first needed; see CSecretLoader.
enum SecretLibrary {
    /// Loads the libraries, unless they are loaded already. None of their functions may be called before this has succeeded.
    /// Any thread may call this.
    static func load() throws(KeyringFailure) {
        guard let reason = watchword_load_secret() else { return }
        throw .notLoaded(String(cString: reason), hasBus: BusAddress.ofSession() != nil)
    }
}

/// The address of the session bus.
enum BusAddress {
    /// Returns the address from the environment, or that of the standard socket; `nil` if there is neither. An `autolaunch:`
    /// address counts as none, because GIO would start a new bus (`dbus-launch`) without the user's keyring.
    static func ofSession(_ environment: (String) -> String? = BusAddress.environment) -> String? {
        if let address = environment("DBUS_SESSION_BUS_ADDRESS") {
            return address.hasPrefix("autolaunch:") ? nil : address
        }
        guard let folder = environment("XDG_RUNTIME_DIR") else { return nil }
        let path = folder + "/bus"
        return access(path, F_OK) == 0 ? "unix:path=\(escaped(path))" : nil
    }

    /// Escapes a value of an address (D-Bus specification, "Server Addresses").
    private static func escaped(_ value: String) -> String {
        value.utf8.reduce(into: "") { text, byte in
            switch byte {
            case UInt8(ascii: "-")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"), UInt8(ascii: "\\"), UInt8(ascii: "*"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                text += byte < 16 ? "%0" : "%"
                text += String(byte, radix: 16)
            }
        }
    }

    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}
