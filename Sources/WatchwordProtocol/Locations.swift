/// The path of the broker's socket, for the broker and its clients.
public struct SocketLocation: Sendable, Equatable {
    public let path: String

    /// The longest path that fits into a socket address, in bytes, without the final NUL (unix(7)).
    public static let longestPath = 107

    /// Uses `explicit`, else `$WATCHWORD_SOCKET`, else `watchword/broker.sock` below `$XDG_RUNTIME_DIR`, else below
    /// `/run/user/UID`.
    ///
    /// An empty variable, and an `$XDG_RUNTIME_DIR` that is not absolute, count as unset.
    public init(explicit: String?, environment: (String) -> String?, uid: UInt32) {
        func variable(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        let runtime = variable("XDG_RUNTIME_DIR").flatMap { $0.hasPrefix("/") ? $0 : nil }
        path =
            explicit ?? variable("WATCHWORD_SOCKET") ?? "\(runtime ?? "/run/user/\(uid)")/watchword/broker.sock"
    }

    /// The directory of the socket.
    public var folder: String { Self.directory(of: path) }

    /// Returns the parent directory of `path`: everything before the last slash.
    public static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The restricted socket in the same directory, for clients without access to stored credentials.
    public var restricted: SocketLocation { SocketLocation(path: "\(folder)/restricted.sock") }

    public var isShortEnough: Bool { path.utf8.count <= Self.longestPath }

    private init(path: String) { self.path = path }
}

/// The directory of the broker's persistent state that is not secret, such as the audit log.
public enum StateLocation {
    /// Returns `watchword` below `$XDG_STATE_HOME`, else below `~/.local/state`; `nil` if neither variable is set.
    ///
    /// A variable that is empty or not absolute counts as unset.
    public static func folder(environment: (String) -> String?) -> String? {
        absolute("XDG_STATE_HOME", or: ".local/state", environment).map { "\($0)/watchword" }
    }

    /// Returns the name of an audit log file in that directory: the current file for 0, rotated files for higher numbers. The
    /// higher the number, the older the file.
    public static func auditFile(_ number: Int = 0) -> String { number == 0 ? "audit.jsonl" : "audit.\(number).jsonl" }

    /// The number of rotated files that the configuration allows at most, and the current one.
    public static let mostAuditFiles = 100

    /// The file that was the current one until the files were rotated, before it is `auditFile(1)`.
    public static let auditFileInRotation = "audit.0.jsonl"

    /// Returns the name of a file that replaces the rotated file of this number and all older ones.
    public static func reducedAuditFile(_ number: Int) -> String { "audit.\(number).reduced.jsonl" }
}

/// The path of the broker's configuration file.
public enum ConfigurationLocation {
    /// Returns `watchword/config.toml` below `$XDG_CONFIG_HOME`, else below `~/.config`; `nil` if neither variable is set.
    ///
    /// A variable that is empty or not absolute counts as unset.
    public static func path(environment: (String) -> String?) -> String? {
        absolute("XDG_CONFIG_HOME", or: ".config", environment).map { "\($0)/watchword/config.toml" }
    }
}

/// Returns the folder that a variable names, or else this one below `$HOME`. A variable that is not absolute counts as unset.
private func absolute(_ variable: String, or usual: String, _ environment: (String) -> String?) -> String? {
    func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
    return folder(variable) ?? folder("HOME").map { "\($0)/\(usual)" }
}
