/// The directory of the broker's persistent state that is not secret, such as the audit log.
public enum StateLocation {
    /// Returns `watchword` below `$XDG_STATE_HOME`, else below `~/.local/state`; `nil` if neither variable is set.
    ///
    /// A variable that is empty or not absolute counts as unset.
    public static func folder(environment: (String) -> String?) -> String? {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let state = folder("XDG_STATE_HOME") ?? folder("HOME").map { "\($0)/.local/state" }
        return state.map { "\($0)/watchword" }
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
