/// The result of reading the configuration again.
enum Reloading {
    /// All of it is in effect.
    case applied
    /// All of it is in effect but these options.
    case needsRestart([String])
    /// It has a mistake, and nothing has changed.
    case refused

    /// The line that the service manager shows.
    var status: String {
        switch self {
        case .applied: "Listening."
        case .needsRestart(let options):
            "Listening; restart the broker for \(options.joined(separator: " and ")) to take effect."
        case .refused: "Listening; the configuration has a mistake."
        }
    }
}
