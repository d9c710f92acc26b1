/// The path of the broker's configuration file.
public enum ConfigurationLocation {
    /// Returns `watchword/config.toml` below `$XDG_CONFIG_HOME`, else below `~/.config`; `nil` if neither variable is set.
    ///
    /// A variable that is empty or not absolute counts as unset.
    public static func path(environment: (String) -> String?) -> String? {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let configuration = folder("XDG_CONFIG_HOME") ?? folder("HOME").map { "\($0)/.config" }
        return configuration.map { "\($0)/watchword/config.toml" }
    }
}
