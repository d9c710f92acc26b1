/// The result of reloading the configuration.
enum Reloading {
    /// All options are in effect.
    case applied
    /// All options except these are in effect.
    case needsRestart([String])
    /// A file that the configuration names cannot be used. What needs it is not in effect, everything else is.
    case lacksFile
    /// The new configuration is invalid. The previous one remains in effect.
    case refused

    /// The status line for the service manager.
    var status: String {
        switch self {
        case .applied: "Listening."
        case .needsRestart(let options):
            "Listening; restart the broker for \(options.joined(separator: " and ")) to take effect."
        case .lacksFile: "Listening; a file that the configuration names cannot be used, see the log."
        case .refused: "Listening; the configuration is invalid."
        }
    }
}
