internal import CSecretLoader
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
