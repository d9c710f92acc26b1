import Glibc

/// Removes all environment variables that the broker does not need. libcurl, OpenSSL, GSS-API and GLib read proxies,
/// key log files, trace files and module paths from the environment. With these, the process that starts the broker
/// could control it or read its secrets.
enum EnvironmentCleaning {
    private static let allowed: Set<String> = [
        "HOME", "USER", "LOGNAME", "PATH", "LANG", "LANGUAGE", "TZ", "DBUS_SESSION_BUS_ADDRESS", "KRB5CCNAME",
        "KRB5_CONFIG",
    ]
    private static let allowedPrefixes = ["LC_", "XDG_", "WATCHWORD_"]

    static func isAllowed(_ name: String) -> Bool {
        allowed.contains(name) || allowedPrefixes.contains { name.hasPrefix($0) }
    }

    /// To be called before there are other threads.
    static func apply() {
        for name in names() where !isAllowed(name) { unsetenv(name) }
        // GLib before 2.76 has an allocator of its own, which deadlocks if it gets no memory while GLib is loaded, and holds
        // the dynamic linker's lock meanwhile. With malloc(3) the process exits instead, and freed blocks are wiped.
        setenv("G_SLICE", "always-malloc", 1)
    }

    private static func names() -> [String] {
        var names: [String] = []
        var entry = environ
        while let text = entry.pointee {
            names.append(String(String(cString: text).prefix { $0 != "=" }))
            entry += 1
        }
        return names
    }
}
