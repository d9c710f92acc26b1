/// Where the broker looks for its configuration.
public enum ConfigurationLocation {
    /// `watchword/config.toml` below `$XDG_CONFIG_HOME`, else below `~/.config`; `nil` without either.
    ///
    /// Variables that are empty or not absolute count as absent.
    public static func path(environment: (String) -> String?) -> String? {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let configuration = folder("XDG_CONFIG_HOME") ?? folder("HOME").map { "\($0)/.config" }
        return configuration.map { "\($0)/watchword/config.toml" }
    }
}
