import Glibc

/// Leaves only what the broker needs in the environment. libcurl, OpenSSL, GSS-API and GLib read proxies, key logs, trace files
/// and module paths from there; whoever starts the broker must not steer it with them.
enum EnvironmentCleaning {
    private static let kept: Set<String> = [
        "HOME", "USER", "LOGNAME", "PATH", "LANG", "LANGUAGE", "TZ", "DBUS_SESSION_BUS_ADDRESS", "KRB5CCNAME",
        "KRB5_CONFIG",
    ]
    private static let keptPrefixes = ["LC_", "XDG_", "WATCHWORD_"]

    static func isKept(_ name: String) -> Bool { kept.contains(name) || keptPrefixes.contains { name.hasPrefix($0) } }

    static func apply() {
        for name in names() where !isKept(name) { unsetenv(name) }
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
