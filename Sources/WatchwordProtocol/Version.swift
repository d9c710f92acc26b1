/// The version of the programs, as they print it and as `initialize` says it.
public enum WatchwordVersion {
    public static let current = "0.4.0"
}
