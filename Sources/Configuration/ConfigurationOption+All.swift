extension ConfigurationOption {
    /// Every option, in the order of the manual page; those of one table stand together.
    public static let all: [ConfigurationOption] = [
        .seconds(
            "limits.challenge-deadline-s", 1...86_400, \.challengeDeadline,
            "How many seconds a log-in question waits for its answer. After that the fetch goes on without one."),
        .seconds(
            "limits.session-idle-s", 1...86_400, \.sessionIdle,
            "A credential that was not used for so many seconds is forgotten by the session."),
        .seconds(
            "limits.session-lifetime-s", 1...604_800, \.sessionLifetime,
            "So many seconds after it was entered the session forgets a credential, however often it was used."),
        .count(
            "limits.session-entries", 1...65_536, \.sessionEntries,
            "How many protection spaces the session remembers. The one unused for longest goes first."),
        .boolean(
            "keyring.enabled", \.keyringEnabled,
            "Whether credentials are looked up and kept in the keyring. With false they last for the session."),
        .milliseconds(
            "keyring.call-limit-ms", 100...60_000, \.keyringCall,
            "How many milliseconds one call to the keyring may take. A window that it shows has its own limit."),
        .hosts(
            "fetch.allow", \.allowedHosts,
            "The only hosts that may be fetched from. Without this option that is every host, with an empty list none."),
        .hosts(
            "fetch.deny", \.deniedHosts,
            "Hosts that are never fetched from, also where fetch.allow has them."),
        .proxyURL(
            "proxy.url", \.proxyURL,
            "The HTTP proxy for all fetches. User and password are not written here: others may read this file."),
        .hosts(
            "proxy.except", \.proxyExceptions,
            "Hosts that are reached without the proxy."),
        .choice(
            "sharing.session", \.sharing,
            "Who may use what is remembered for the session: with \"user\" every program of the user, with \"client\" only the "
                + "connection that brought the credential."),
    ]

    /// The tables, in the order of the manual page.
    static let tables: [String] = all.map(\.table).reduce(into: []) { tables, table in
        if tables.last != table { tables.append(table) }
    }

    /// The options of a table.
    static func inTable(_ table: String) -> [ConfigurationOption] { all.filter { $0.table == table } }
}
