extension ConfigurationOption {
    /// All options, in the order of the manual page, grouped by table.
    public static let all: [ConfigurationOption] = [
        .seconds(
            "limits.challenge-deadline-s", 1...86_400, \.challengeDeadline,
            "Specifies how many seconds a challenge waits for an answer. After that the fetch continues without "
                + "logging in."),
        .seconds(
            "limits.session-idle-s", 1...86_400, \.sessionIdle,
            "Specifies the time in seconds after which an unused credential is removed from the session cache."),
        .seconds(
            "limits.session-lifetime-s", 1...604_800, \.sessionLifetime,
            "Specifies the time in seconds after which a credential is removed from the session cache even if it is "
                + "used, counted from when it was entered."),
        .count(
            "limits.session-entries", 1...65_536, \.sessionEntries,
            "Specifies the maximum number of credentials in the session cache. If there are more, the least recently used "
                + "one is removed."),
        .boolean(
            "keyring.enabled", \.keyringEnabled,
            "Specifies whether credentials are looked up and stored in the keyring. If false, they are stored for "
                + "the session only."),
        .milliseconds(
            "keyring.call-limit-ms", 100...60_000, \.keyringCall,
            "Specifies the timeout for a call to the keyring, in milliseconds. A window that the keyring shows has "
                + "a separate timeout."),
        .hosts(
            "fetch.allow", \.allowedHosts,
            "Specifies the only hosts that may be fetched from. If the option is not set, all hosts are allowed; if "
                + "the list is empty, none."),
        .hosts(
            "fetch.deny", \.deniedHosts,
            "Specifies hosts that are never fetched from, even if fetch.allow lists them. No connection is made to "
                + "an IP address in this list, whether it is the address of a server or of a proxy, and whatever "
                + "name resolves to it; 127.0.0.1, [::1] and localhost each match all loopback addresses. A host "
                + "name in this list denies that name only, not its addresses. A fetch through a proxy is checked "
                + "by name only, because the proxy resolves the name."),
        .proxyURL(
            "proxy.url", \.proxyURL,
            "Specifies the proxy for all fetches. The proxy also resolves all host names. With https the connection "
                + "to the proxy uses TLS, with socks5h it uses SOCKS 5. The URL must not contain a user name or a "
                + "password, because other users may be able to read this file; the broker asks for them if the "
                + "proxy requires a login."
        ),
        .hosts(
            "proxy.except", \.proxyExceptions,
            "Specifies hosts that are reached without a proxy. A network, such as 10.0.0.0/8 or fd00::/8, stands for the "
                + "URLs whose host is an address in it; names are not resolved for it.", allowsNetworks: true),
        .proxyRules(
            "proxy.rule",
            "Specifies the proxies for some hosts, in tables [[proxy.rule]]. \"hosts\" is a list of host patterns and networks; "
                + "\"use\" is a list of proxy URLs as in proxy.url, and \"direct\" for no proxy, in order of "
                + "preference. The first rule with a matching host applies; other hosts use proxy.pac, proxy.desktop or "
                + "proxy.url. If a proxy cannot be reached within 10 seconds, the next one is used, and the failed one "
                + "comes last for one minute, which doubles with each further failure up to 30 minutes. A server is "
                + "contacted without a proxy only if the list contains \"direct\". A login, an error of the server and "
                + "an untrusted certificate of a proxy do not cause another one to be used, and a request that a server "
                + "may have received is sent again only if its method is GET, HEAD, OPTIONS or TRACE."),
        .scriptURL(
            "proxy.pac", \.proxyPAC,
            "Specifies the URL of a PAC file (proxy auto-configuration), whose function FindProxyForURL chooses the "
                + "proxies of all hosts without a rule. It gets the origin of a URL without path and query. A file must "
                + "be owned by you or by root, and only the owner may have write permission; with http or https it is "
                + "fetched without a proxy and without a login, again after 15 minutes and on SIGHUP. Prefer "
                + "https: others on the network path can change a file by http, so it lets no stored login pass to http "
                + "servers. The file has at most 1 MiB, and runs in a separate process with limits of 2 seconds and "
                + "16 MiB. Its text is read by its byte order mark, else as UTF-8, else as Latin-1. Its language is "
                + "ECMAScript 5 with little more (const and some functions of later versions): without let, arrow functions, "
                + "template literals, classes and the like, which \"watchword doctor\" names with their lines. Its functions "
                + "are those of browsers: the pattern of shExpMatch is a regular expression in which a dot is only a dot, "
                + "and * and ? stand for any characters and for any character. Results are used for a minute. If the file cannot be used, the proxy in proxy.url is "
                + "used; without that option, fetches fail. Cannot be used if process.filter-system-calls is true."),
        .boolean(
            "proxy.desktop", \.usesDesktopProxy,
            "Specifies whether the proxy settings of the GNOME desktop are used for all hosts without a rule, as "
                + "gsettings(1) reports them, including its hosts without a proxy and its PAC file. If they cannot be "
                + "read, proxy.url is used; without that option, fetches fail. Cannot be used together with proxy.pac, or "
                + "if process.filter-system-calls is true."),
        .hosts(
            "schemes.negotiate", \.negotiateHosts,
            "Specifies servers and proxies to which the broker logs in with your Kerberos tickets, without asking. "
                + "Each of them learns who you are as soon as it requests a login, whatever you fetch there; list "
                + "only hosts of your own organisation."),
        .hosts(
            "schemes.delegate", \.delegationHosts,
            "Specifies which of the hosts in schemes.negotiate also receive a delegated Kerberos ticket of yours. "
                + "Such a server, and anyone who breaks into it, can act as you everywhere until the ticket expires. "
                + "Without schemes.negotiate this option has no effect."),
        .hosts(
            "schemes.ntlm", \.ntlmHosts,
            "Specifies servers and proxies for which NTLM is allowed. An NTLM login can be relayed to another "
                + "server, and the password can be guessed from it offline; list only hosts that support nothing "
                + "better."),
        .hosts(
            "schemes.latin1", \.latin1Hosts,
            "Specifies servers and proxies that expect user and password in ISO 8859-1 when they request Digest without "
                + "a charset; a login with other characters is sent in UTF-8 there, too. All others get UTF-8. For Basic, "
                + "UTF-8 is always used."),
        .rules(
            "schemes.order", .schemeOrders, \.schemeOrders,
            "Specifies which authentication schemes are used for some hosts, and in which order. Each string is a "
                + "host pattern followed by schemes, separated by spaces; the first string whose pattern matches "
                + "applies. The first scheme is preferred, and schemes that are not listed are not used. An order "
                + "that begins with a weak scheme lets the server, or anyone who impersonates it, obtain the weak "
                + "login. Negotiate and NTLM must also be allowed by schemes.negotiate and schemes.ntlm. For other "
                + "hosts the strongest scheme that the server offers is preferred."
        ),
        .boolean(
            "schemes.weak", \.allowsWeak,
            "Specifies whether outdated and malformed challenges are answered: Basic without a realm, Digest "
                + "without qop (RFC 2069), and a realm without quotation marks. They are marked as weak, and ranked "
                + "after all better challenges."),
        .path(
            "tokens.module", \.tokenModule,
            "Specifies the PKCS#11 module for client certificates on tokens, which is loaded into the broker. The "
                + "default is the module of p11-kit. A change takes effect when the broker is restarted."),
        .choice(
            "sharing.session", \.sharing,
            "Specifies which programs may use the credentials of the session: with \"user\" all programs of the "
                + "user, with \"client\" only the connection that provided the credential, with \"ask\" the programs "
                + "that you have allowed, for which an agent asks you. \"ask\" also applies to the keyring and to "
                + "Kerberos tickets. Sandboxed programs always need your permission."
        ),
        .rules(
            "credentials.hand-out", .releaseRules, \.releaseRules,
            "Specifies which programs receive passwords (credential/get), and for which servers. This is for "
                + "programs that log in without the broker, such as git with a credential helper. Each string is the "
                + "path of a program followed by host patterns, separated by spaces. Anyone who can run that "
                + "program can obtain those passwords from it; with an interpreter such as python3, every script "
                + "can. The command \"watchword log\" shows each use. For git, give the path of watchword itself."
        ),
        .path(
            "credentials.netrc", \.netrcFile,
            "Specifies a netrc file (netrc(5)), such as ~/.netrc, whose logins are used if neither the session nor "
                + "the keyring contains one. Without this option no netrc file is read. It must be a regular file, not a "
                + "symbolic link, that is owned by the user, has no permissions for group and others (mode 0600), "
                + "and is at most 1 MiB; otherwise it is not used, and the log says why. \"machine HOST\" applies "
                + "to https on the default port of exactly that host, \"machine HOST:PORT\" to another port. Over "
                + "http, logins are sent only to the local machine; they are never sent to a proxy. The first entry "
                + "for a host is used, or the entry for the user that the fetch specifies; \"default\" entries and "
                + "malformed entries are ignored. A value that is a netrc keyword must be in quotation marks. If a "
                + "keyring is present but fails or is locked, or libsecret cannot be loaded in a session with a bus, the "
                + "file is not used. The file is read at each lookup.",
            type: .homePath),
        .rules(
            "credentials.commands", .commands, \.credentialCommands,
            "Specifies commands that print passwords, such as that of a password manager. Each string is a host "
                + "pattern, a user and a command, separated by spaces; the first string whose pattern matches a server is "
                + "used if neither the session, the keyring nor the netrc file has a login for it, under the same "
                + "conditions as the netrc file. The command is an absolute path and arguments; no shell is used. The "
                + "first line of its output is the password. It has 30 seconds, no input, no terminal, and of the "
                + "environment only HOME, USER, LOGNAME, PATH, the locale, the bus and variables that begin with XDG_ or "
                + "WATCHWORD_. If it fails, you are asked. Programs cannot be run if process.filter-system-calls is "
                + "true, or under the AppArmor profile of the Debian package without a local addition."),
        .boolean(
            "audit.enabled", \.auditEnabled,
            "Specifies whether the audit log records which program used which login for which server. It never "
                + "contains secrets or response bodies. The command \"watchword log\" shows it."),
        .count(
            "audit.file-bytes", 4096...(1 << 30), \.auditFileBytes,
            "Specifies the size at which the audit log is rotated, in bytes."),
        .count(
            "audit.old-files", 0...99, \.auditOldFiles,
            "Specifies the number of rotated files of the audit log. Older files are deleted."),
        .address(
            "front.proxy", \.frontProxy,
            "Specifies the address of a forward proxy for unchanged programs: the broker forwards their requests and logs "
                + "in for them. It serves the hosts in front.hosts only, because every program of the user can use it. "
                + "Other users have no access. A change takes effect when the broker is restarted."),
        .hosts(
            "front.hosts", \.frontHosts,
            "Specifies the hosts that programs reach through front.proxy. A proxy of \"watchword run\" serves all hosts."
        ),
        .ports(
            "front.tunnel-ports", \.frontTunnelPorts,
            "Specifies the ports to which proxies open tunnels (CONNECT). Port 25 is never allowed."),
        .sites(
            "front.site", \.frontSites,
            "Specifies sites that the broker serves to local programs by plain HTTP, in tables [[front.site]]. \"listen\" "
                + "is the address; \"url\" is the site: http or https, a host and a port. \"restricted = true\" is for "
                + "programs in a container or sandbox: each request is recorded in the audit log, and a login that the "
                + "program sends itself is dropped; \"consent = \"ask\"\" also lets an agent ask before they use a stored "
                + "login. \"methods\" and \"paths\" list the allowed ones; a path that "
                + "ends with a slash allows everything below it. A front with \"restricted\", \"methods\" or \"paths\" gets usual request fields "
                + "only, because servers take methods and paths from others; \"fields\" lists more that are passed on, such "
                + "as \"anthropic-version\". \"budget\" is the number of requests after which "
                + "further ones are refused. A change takes effect when the broker is restarted."),
        .boolean(
            "process.filter-system-calls", \.filtersSystemCalls,
            "Specifies whether the broker filters its system calls with seccomp(2), so that it cannot run programs, "
                + "inspect other processes, mount file systems and the like. A change takes effect when the broker "
                + "is restarted."),
    ]

    /// The tables, in the order of the manual page.
    static let tables: [String] = all.map(\.table).reduce(into: []) { tables, table in
        if tables.last != table { tables.append(table) }
    }

    /// Returns the options of a table.
    static func inTable(_ table: String) -> [ConfigurationOption] { all.filter { $0.table == table } }
}
