internal import WatchwordCore
internal import WatchwordProtocol

/// An option of the settings.
typealias ConfigurationOption = TableOption<Settings>

extension Settings: TableTarget {
    static let options: [ConfigurationOption] = [
        .seconds("limits.challenge-deadline-s", 1...86_400, \.challengeDeadline),
        .seconds("limits.session-idle-s", 1...86_400, \.sessionIdle),
        .seconds("limits.session-lifetime-s", 1...604_800, \.sessionLifetime),
        .count("limits.session-entries", 1...65_536, \.sessionEntries),
        .boolean("keyring.enabled", \.keyringEnabled),
        .milliseconds("keyring.call-limit-ms", 100...60_000, \.keyringCall),
        .hosts("fetch.allow", \.allowedHosts),
        .hosts("fetch.deny", \.deniedHosts),
        .text("proxy.url", .proxyURL, \.proxyURL, read: ProxyURL.canonical),
        .hosts("proxy.except", \.proxyExceptions, allowsNetworks: true),
        .tables("proxy.rule", .proxyRules),
        .text("proxy.pac", .scriptURL, \.proxyPAC) { ScriptURL.isValid($0) ? $0 : nil },
        .boolean("proxy.desktop", \.usesDesktopProxy),
        .hosts("schemes.negotiate", \.negotiateHosts),
        .hosts("schemes.delegate", \.delegationHosts),
        .hosts("schemes.ntlm", \.ntlmHosts),
        .hosts("schemes.latin1", \.latin1Hosts),
        .rules("schemes.order", .schemeOrders, \.schemeOrders),
        .boolean("schemes.weak", \.allowsWeak),
        .text("tokens.module", .path, \.tokenModule) { isPath($0) ? $0 : nil },
        .choice("sharing.session", \.sharing, example: .user),
        .rules("credentials.hand-out", .releaseRules, \.releaseRules),
        .text("credentials.netrc", .homePath(example: "~/.netrc"), \.netrcFile) { isHomePath($0) ? $0 : nil },
        .rules("credentials.commands", .commands, \.credentialCommands),
        .boolean("audit.enabled", \.auditEnabled),
        .count("audit.file-bytes", 4096...(1 << 30), \.auditFileBytes),
        .count("audit.old-files", 0...99, \.auditOldFiles),
        .text("front.proxy", .address, \.frontProxy, text: { $0?.text }, read: { try FrontAddress($1) }),
        .hosts("front.hosts", \.frontHosts),
        ConfigurationOption(
            "front.tunnel-ports", .ports, \.frontTunnelPorts,
            written: { "[\($0.map(String.init).joined(separator: ", "))]" },
            read: { option, value in
                if case .strings(let texts) = value, texts.isEmpty { return [] }
                guard case .integers(let ports) = value else { throw option.unexpected(value.kindText) }
                if let wrong = ports.first(where: { !(1...65_535).contains($0) }) {
                    throw option.unexpected("\(wrong)")
                }
                return ports.map { Int($0) }
            }),
        .tables("front.site", .sites),
        .boolean("process.filter-system-calls", \.filtersSystemCalls),
    ]

    /// The tables, in the order of the manual page.
    static let tables: [String] = options.map(\.table).reduce(into: []) { tables, table in
        if tables.last != table { tables.append(table) }
    }

    /// Whether a text is an absolute path.
    static func isPath(_ text: String) -> Bool { text.hasPrefix("/") && !text.utf8.contains(0) }

    /// Whether a text is an absolute path, or one below the home directory of the user.
    static func isHomePath(_ text: String) -> Bool { isPath(text.hasPrefix("~/") ? String(text.dropFirst()) : text) }
}

extension ConfigurationOption {
    /// The part of the key before the dot.
    var table: String { String(key.prefix { $0 != "." }) }
}

// MARK: Lists of tables

extension ProxyRuleSetting: ListedTable {
    static let options: [TableOption<ProxyRuleSetting>] = [
        .hosts("hosts", \.hosts, allowsNetworks: true),
        .strings(
            "use", ValueType("a list of proxy URLs", example: "[\"http://a.example:3128\", \"direct\"]"), \.use,
            texts: \.self, list: \.self
        ) { _, text in
            do throws(Refusal) { return text == "direct" ? text : try ProxyURL.canonical(text) } catch {
                throw Refusal("\(error.text), or \"direct\"")
            }
        },
    ]

    init() { self.init(hosts: [], use: []) }

    var problems: [(option: String, text: String)] {
        [("hosts", hosts.isEmpty), ("use", use.isEmpty)].filter(\.1).map { ($0.0, "is missing or empty; add it") }
    }
}

/// A table `[[front.site]]`.
struct FrontSiteTable: ListedTable {
    private var address: FrontAddress?
    private var url: String?
    private var site = FrontSite(url: "")

    static let options: [TableOption<FrontSiteTable>] = [
        .text("listen", .address, \.address, text: { $0?.text }, read: { try FrontAddress($1) }),
        .text(
            "url",
            ValueType(
                "http:// or https:// with a host and a port, but without a path",
                example: "\"https://intranet.example\""),
            \.url
        ) { isSite($0) ? $0 : nil },
        .boolean("restricted", \.site.isRestricted),
        .text(
            "consent", ValueType("\"ask\", or nothing: the configuration is the consent", example: "\"ask\""),
            \.site.asksConsent, text: { $0 ? FrontSite.askingConsent : nil },
            read: { option, text in
                guard text == FrontSite.askingConsent else { throw option.invalid }
                return true
            }),
        texts("methods", "methods in upper case", "[\"GET\", \"HEAD\"]", \.site.methods, FrontSite.isMethod),
        texts(
            "paths", "paths that begin with a slash, without a query, dot segments and percent signs", "[\"/api/\"]",
            \.site.paths, FrontSite.isPath),
        texts("fields", "names of fields", "[\"anthropic-version\"]", \.site.fields, FrontSite.isField),
        .count("budget", 1...Int64(FrontSite.largestBudget), example: 1000, \.site.budget),
    ]

    private static func texts(
        _ key: String, _ type: String, _ example: String, _ place: TableOption<Self>.Place<[String]?>,
        _ isValid: @escaping @Sendable (String) -> Bool
    ) -> TableOption<Self> {
        TableOption(
            key, ValueType(type, example: example), place, written: { _ in nil },
            read: { option, value in
                guard case .strings(let texts) = value else { throw option.unexpected(value.kindText) }
                guard texts.allSatisfy({ isValid($0.text) }) else { throw option.invalid }
                return texts.map(\.text)
            })
    }

    init() {}

    var problems: [(option: String, text: String)] {
        [
            (address == nil, "listen", "is missing; add it"), (url == nil, "url", "is missing; add it"),
            (site.asksConsent && !site.isRestricted, "consent", "needs a restricted front; add: restricted = true"),
        ].filter(\.0).map { ($0.1, $0.2) }
    }

    /// The site of a table without problems.
    var setting: FrontSiteSetting? {
        guard let address, let url else { return nil }
        var site = site
        site.url = url
        return FrontSiteSetting(address: address, site: site)
    }

    private static func isSite(_ text: String) -> Bool {
        guard let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) else { return false }
        let rest = text.dropFirst(scheme.count)
        let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
        return !authority.isEmpty && !authority.contains { "/?#@ ".contains($0) }
    }
}

extension Settings {
    /// Reads the lists of tables, and returns all problems, also of options that exclude each other.
    mutating func readLists(_ entries: [TOMLEntry]) -> [SettingsProblem] {
        let (sites, rules) = (
            FrontSiteTable.list("front.site", in: entries), ProxyRuleSetting.list("proxy.rule", in: entries)
        )
        (frontSites, proxyRules) = (sites.tables.compactMap(\.setting), rules.tables)
        var problems = sites.problems + rules.problems
        let addresses = frontSites.map(\.address) + [frontProxy].compactMap(\.self)
        for (index, address) in addresses.enumerated() where addresses[..<index].contains(address) {
            problems.append(
                SettingsProblem(
                    line: nil, key: "front.site",
                    "two fronts listen at \(address.text); choose another address for one"))
        }
        if proxyPAC != nil && usesDesktopProxy {
            problems.append(
                SettingsProblem(line: nil, key: "proxy.pac", "a PAC file excludes proxy.desktop; remove one of them"))
        }
        return problems
    }
}
