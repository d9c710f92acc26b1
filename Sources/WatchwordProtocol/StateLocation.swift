/// Where the broker keeps what outlives it and is no secret.
public enum StateLocation {
    /// `watchword` below `$XDG_STATE_HOME`, else below `~/.local/state`; `nil` without either.
    ///
    /// Variables that are empty or not absolute count as absent.
    public static func folder(environment: (String) -> String?) -> String? {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let state = folder("XDG_STATE_HOME") ?? folder("HOME").map { "\($0)/.local/state" }
        return state.map { "\($0)/watchword" }
    }

    /// The name of a file of the audit log in that folder: the one that is written to, or, with a number, an older one. The
    /// higher the number, the older.
    public static func auditFile(_ number: Int = 0) -> String { number == 0 ? "audit.jsonl" : "audit.\(number).jsonl" }
}
