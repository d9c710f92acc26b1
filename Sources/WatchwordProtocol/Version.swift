/// The version of all programs, as `--version` prints it and `initialize` returns it.
public enum WatchwordVersion {
    public static let current = "0.4.0"
    /// The date of this version, as the manual pages show it.
    public static let date = "2026-11-21"
}
