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
            "Hosts that are never fetched from, also where fetch.allow has them. No connection is made to an address in this "
                + "list, be it the address of a server or of a proxy, whatever name leads to it; 127.0.0.1, [::1] and "
                + "localhost stand for all loopback addresses. A name in this list stands for that name alone. What is "
                + "fetched through a proxy is checked by name only, as the proxy looks up the address."),
        .proxyURL(
            "proxy.url", \.proxyURL,
            "The proxy for all fetches, which also looks up all names; with https it is spoken to over TLS, with socks5h by "
                + "SOCKS 5. User and password are not written here, as others may read this file: where it wants them they are asked for."
        ),
        .hosts(
            "proxy.except", \.proxyExceptions,
            "Hosts that are reached without the proxy."),
        .hosts(
            "schemes.negotiate", \.negotiateHosts,
            "Servers and proxies that are logged in to with your Kerberos tickets, without asking. Each of them learns who you "
                + "are as soon as it asks, whatever you fetch there: name only those of your own organisation."),
        .hosts(
            "schemes.delegate", \.delegationHosts,
            "Those among them that are also given a ticket of yours to pass on. Such a server, and whoever breaks into it, "
                + "can act as you everywhere until the ticket ends. Without schemes.negotiate this does nothing."),
        .hosts(
            "schemes.ntlm", \.ntlmHosts,
            "Servers and proxies that may ask for NTLM. What is sent there can be relayed to another server, and the password "
                + "can be guessed from it without asking anybody: name only hosts that can do nothing better."),
        .schemeOrders(
            "schemes.order", \.schemeOrders,
            "Which schemes are used for some hosts, the first one first; others are not used there. Each string is a host "
                + "pattern and schemes with spaces in between; the first whose pattern matches counts. An order that puts a "
                + "weak scheme first lets the server, or whoever stands in for it, have the weak one. Negotiate and NTLM need "
                + "schemes.negotiate and schemes.ntlm all the same. Elsewhere the strongest that is offered comes first."
        ),
        .boolean(
            "schemes.weak", \.allowsWeak,
            "Whether old and sloppy challenges are answered: Basic without a realm, Digest without qop (RFC 2069), a realm "
                + "without quotation marks. They are marked as weak, and come after everything better that is offered."),
        .path(
            "tokens.module", \.tokenModule,
            "The PKCS#11 module through which client certificates on tokens are used; it is loaded into the broker. Without "
                + "this option it is p11-kit's. It takes effect when the broker starts."),
        .choice(
            "sharing.session", \.sharing,
            "Who may use what is remembered for the session: with \"user\" every program of the user, with \"client\" only the "
                + "connection that brought the credential, with \"ask\" every program that you have let use it, and the same "
                + "holds for the keyring and for Kerberos tickets: an agent asks you. Programs in a sandbox ask always."
        ),
        .handOuts(
            "credentials.hand-out", \.handOuts,
            "Which programs are given passwords themselves (credential/get), and for which servers: git's helper and the "
                + "like, which log in without the broker. Each string is a program file and host patterns with spaces in "
                + "between. Whoever can run that program can have those passwords from it; with an interpreter such as "
                + "python3 that is every script. watchword log shows each use. For git, name the file of watchword itself."
        ),
        .path(
            "credentials.netrc", \.netrcFile,
            "A netrc file (netrc(5)), such as ~/.netrc, whose logins are used where neither the session nor the keyring has "
                + "one; without this option none is read. It has to be a regular file, no symbolic link, of the user, with no "
                + "rights for group and others (mode 0600), and at most 1 MiB; otherwise the log says why it is not used. "
                + "\"machine HOST\" is for exactly that host, and the default port, of https; \"machine HOST:PORT\" for another "
                + "port. Over http a login goes only to this machine itself, and to a proxy none. The first entry of a host "
                + "counts, or that of the user whom the fetch names; \"default\" entries are not used, nor malformed ones; a "
                + "value that is a word of netrc has to be in quotation marks. Where there is a keyring that fails or is "
                + "locked, the file is not used. The file is read at each look-up.", type: .homePath),
        .boolean(
            "audit.enabled", \.auditEnabled,
            "Whether it is written down which program used which log-in for which server; never a secret, nor what was "
                + "fetched there. watchword log shows it."),
        .count(
            "audit.file-bytes", 4096...(1 << 30), \.auditFileBytes,
            "So large one file of it becomes, in bytes, before a new one is begun."),
        .count(
            "audit.old-files", 0...99, \.auditOldFiles,
            "How many older files of it are kept. What is in those before them is gone."),
        .boolean(
            "process.filter-system-calls", \.filtersSystemCalls,
            "Whether the broker forbids itself what it never does: to run programs, to look into other processes, to mount and "
                + "the like (seccomp). It takes effect when the broker starts."),
    ]

    /// The tables, in the order of the manual page.
    static let tables: [String] = all.map(\.table).reduce(into: []) { tables, table in
        if tables.last != table { tables.append(table) }
    }

    /// The options of a table.
    static func inTable(_ table: String) -> [ConfigurationOption] { all.filter { $0.table == table } }
}
