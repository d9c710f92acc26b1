import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Configuration

@Suite struct OptionTests {
    /// For each option, a value that is not its default, and the setting that it changes.
    private static let values: [String: (text: String, change: @Sendable (inout Settings) throws -> Void)] = [
        "limits.challenge-deadline-s": ("7", { $0.challengeDeadline = .seconds(7) }),
        "limits.session-idle-s": ("0x10", { $0.sessionIdle = .seconds(16) }),
        "limits.session-lifetime-s": ("1_000", { $0.sessionLifetime = .seconds(1000) }),
        "limits.session-entries": ("3", { $0.sessionEntries = 3 }),
        "keyring.enabled": ("false", { $0.keyringEnabled = false }),
        "keyring.call-limit-ms": ("250", { $0.keyringCall = .milliseconds(250) }),
        "fetch.allow": ("[\"a.example\"]", { $0.allowedHosts = [try HostPattern("a.example")] }),
        "fetch.deny": ("['.b.example:80']", { $0.deniedHosts = [try HostPattern(".b.example:80")] }),
        "proxy.url": ("\"http://p.example:3128\"", { $0.proxyURL = "http://p.example:3128" }),
        "proxy.except": (
            "[\"*.c.example\", \"10.0.0.0/8\"]",
            {
                $0.proxyExceptions = [
                    try HostPattern("*.c.example"), try HostPattern("10.0.0.0/8", allowsNetworks: true),
                ]
            }
        ),
        "proxy.rule": (
            "[{ hosts = ['.c.example'], use = ['socks5://p:1', 'direct'] }]",
            {
                let hosts = [try HostPattern(".c.example")]
                $0.proxyRules = [ProxyRuleSetting(hosts: hosts, use: ["socks5h://p:1", "direct"])]
            }
        ),
        "proxy.pac": ("'file:///etc/proxy.pac'", { $0.proxyPAC = "file:///etc/proxy.pac" }),
        "proxy.desktop": ("true", { $0.usesDesktopProxy = true }),
        "schemes.negotiate": ("['.d.example']", { $0.negotiateHosts = [try HostPattern(".d.example")] }),
        "schemes.delegate": ("['e.example']", { $0.delegationHosts = [try HostPattern("e.example")] }),
        "schemes.latin1": ("['g.example']", { $0.latin1Hosts = [try HostPattern("g.example")] }),
        "schemes.ntlm": ("['f.example:443']", { $0.ntlmHosts = [try HostPattern("f.example:443")] }),
        "schemes.order": (
            "['g.example bearer  basic']",
            { $0.schemeOrders = [SchemeOrder(hosts: try HostPattern("g.example"), order: [.bearer, .httpBasic])] }
        ),
        "schemes.weak": ("false", { $0.allowsWeak = false }),
        "tokens.module": ("\"/lib/m.so\"", { $0.tokenModule = "/lib/m.so" }),
        "sharing.session": ("\"client\"", { $0.sharing = .client }),
        "credentials.hand-out": (
            "['/usr/bin/watchword git.example   *.corp.example:8443']",
            {
                let hosts = [try HostPattern("git.example"), try HostPattern("*.corp.example:8443")]
                $0.releaseRules = [ReleaseRule(program: "/usr/bin/watchword", hosts: hosts)]
            }
        ),
        "credentials.netrc": ("'~/.netrc'", { $0.netrcFile = "~/.netrc" }),
        "credentials.commands": (
            "['git.example.com:8443 bob  /usr/bin/pass show work/git']",
            {
                let hosts = try HostPattern("git.example.com:8443")
                let arguments = ["/usr/bin/pass", "show", "work/git"]
                $0.credentialCommands = [CredentialCommand(hosts: hosts, user: "bob", arguments: arguments)]
            }
        ),
        "audit.enabled": ("false", { $0.auditEnabled = false }),
        "audit.file-bytes": ("4096", { $0.auditFileBytes = 4096 }),
        "audit.old-files": ("0", { $0.auditOldFiles = 0 }),
        "front.proxy": ("'[::1]:3128'", { $0.frontProxy = .ipv6(port: 3128) }),
        "front.hosts": ("['h.example']", { $0.frontHosts = [try HostPattern("h.example")] }),
        "front.tunnel-ports": ("[8443, 9]", { $0.frontTunnelPorts = [8443, 9] }),
        "front.site": (
            "[{ listen = '/run/s', url = 'https://i.example', restricted = true }]",
            {
                let site = FrontSite(url: "https://i.example", isRestricted: true)
                $0.frontSites = [FrontSiteSetting(address: .socket(path: "/run/s"), site: site)]
            }
        ),
        "process.filter-system-calls": ("true", { $0.filtersSystemCalls = true }),
    ]

    @Test func aModuleNeedsAnAbsolutePath() {
        for text in ["''", "'m.so'", "'~/m.so'"] {
            #expect(problems("[tokens]\nmodule = \(text)\n").map(\.key) == ["tokens.module"])
        }
    }

    @Test func aNetrcFileNeedsAPathThatIsAbsoluteOrBelowTheHome() {
        #expect(settings("[credentials]\nnetrc = '/etc/netrc'\n")?.netrcFile == "/etc/netrc")
        for text in ["''", "'netrc'", "'~bob/netrc'", "'~'", "true"] {
            #expect(problems("[credentials]\nnetrc = \(text)\n").map(\.key) == ["credentials.netrc"])
        }
    }

    @Test(arguments: ["''", "'git git.example'", "'/usr/bin/git'", "'/usr/bin/git a b/c'", "'/usr/bin/git *'"])
    func aReleaseRuleNamesAProgramAndHosts(text: String) {
        #expect(problems("[credentials]\nhand-out = [\(text)]\n").map(\.key) == ["credentials.hand-out"])
    }

    @Test(arguments: [
        "''", "'git.example'", "'git.example bob'", "'git.example bob pass show x'", "'a/b bob /usr/bin/pass'",
        "'git.example bob /bin/sh -c \"pass show x\"'", "'git.example bob /usr/bin/pass show x | head -1'",
        "'git.example bob /usr/bin/pass $HOME'", "'git.example bob /bin/a', 'git.example eve /bin/b'",
    ])
    func aCommandHasAHostAUserAndAPathAndUsesNoShell(text: String) {
        #expect(problems("[credentials]\ncommands = [\(text)]\n").map(\.key) == ["credentials.commands"])
    }

    @Test func anEmptyFileMeansTheDefaults() {
        #expect(settings("") == Settings())
        #expect(settings("# nothing\n\n[limits]\n[fetch]\n") == Settings())
        let defaults = Settings()
        #expect(defaults.challengeDeadline == Limits.challengeDeadline)
        #expect(defaults.sessionIdle == Limits.sessionIdle && defaults.sessionLifetime == Limits.sessionLifetime)
        #expect(defaults.sessionEntries == Limits.sessionEntries && defaults.keyringCall == Limits.keyringCall)
        #expect(defaults.keyringEnabled && defaults.sharing == .user)
        #expect(defaults.allowedHosts == nil && defaults.deniedHosts == [])
        #expect(defaults.proxyURL == nil && defaults.proxyExceptions == [])
        #expect(defaults.negotiateHosts == [] && defaults.delegationHosts == [] && defaults.ntlmHosts == [])
        #expect(defaults.schemeOrders == [] && defaults.releaseRules == [] && defaults.credentialCommands == [])
    }

    @Test func theTableIsWellFormed() {
        let keys = Settings.options.map(\.key)
        #expect(Set(keys).count == keys.count)
        #expect(Set(Settings.tables).count == Settings.tables.count)
        #expect(Set(Self.values.keys) == Set(keys))
        #expect(keys.allSatisfy { $0.split(separator: ".", omittingEmptySubsequences: false).count == 2 })
    }

    @Test(arguments: Settings.options)
    func changesTheSettingItIsFor(option: ConfigurationOption) throws {
        let (text, change) = try #require(Self.values[option.key])
        var expected = Settings()
        try change(&expected)
        #expect(expected != Settings())
        #expect(settings(file(option, text)) == expected)
        #expect(settings("\(option.key) = \(text)") == expected)
        #expect(settings("\(option.table) = { \(option.name) = \(text) }") == expected)
        #expect(settings("[\"\(option.table)\"]\n'\(option.name)' = \(text)") == expected)
    }

    @Test(arguments: Settings.options)
    func theDefaultAndTheExampleCanBeWritten(option: ConfigurationOption) {
        if let text = option.defaultText { #expect(settings(file(option, text)) == Settings()) }
        #expect(settings(file(option, option.type.example)) != nil)
        #expect(
            (option.defaultText == nil)
                == [
                    "fetch.allow", "proxy.url", "proxy.rule", "proxy.pac", "tokens.module", "credentials.netrc",
                    "front.proxy", "front.site",
                ].contains(option.key))
    }

    @Test func anEmptyAllowListAllowsNothing() {
        #expect(settings("[fetch]\nallow = []")?.allowedHosts == [])
    }

    @Test(arguments: Settings.options)
    func enforcesTheRange(option: ConfigurationOption) throws {
        guard let range = option.type.range else { return }
        for number in [range.lowerBound, range.upperBound] {
            #expect(option.written(try #require(settings(file(option, "\(number)")))) == "\(number)")
        }
        for number in [range.lowerBound - 1, range.upperBound + 1, -1, .min, .max] {
            let found = problems(file(option, "\(number)"))
            #expect(found.map(\.line) == [3] && found.map(\.key) == [option.key])
            #expect(
                found[0].text.hasPrefix("expected \(option.type.text), found \(number); for example, write: "))
        }
        #expect(problems(file(option, "9223372036854775808")).map(\.line) == [3])
    }

    @Test func theRangesMatchTheManual() {
        let ranges = Settings.options.compactMap(\.type.range)
        let wanted: [ClosedRange<Int64>] = [
            1...86_400, 1...86_400, 1...604_800, 1...65_536, 100...60_000, 4096...1_073_741_824, 0...99,
        ]
        #expect(ranges == wanted)
    }

    @Test(
        arguments: Settings.options,
        [
            ("\"text\"", "a string"), ("5", "a whole number"), ("120.0", "a number with a fraction or an exponent"),
            ("true", "true or false"), ("[\"h\"]", "a list of strings"), ("[]", "an empty list"), ("{}", "a table"),
            ("[1]", "a list of whole numbers"),
            ("[\"h\", 1]", "a date, a time, or a list of values of several types"),
            ("1979-05-27", "a date, a time, or a list of values of several types"),
        ])
    func refusesOtherTypes(option: ConfigurationOption, value: (text: String, kind: String)) {
        let fits =
            switch option.type.example.prefix(2) {
            case "[{": ["[]"]
            case "[\"": ["[\"h\"]", "[]"]
            case "[4": ["[1]", "[]"]
            case "tr": ["true"]
            case let text where text.hasPrefix("\""): ["\"text\""]
            default: ["5"]
            }
        if fits.contains(value.text) { return }
        let found = problems(file(option, value.text))
        #expect(found.map(\.line) == [3] && found.map(\.key) == [option.key])
        #expect(
            found[0].text.hasPrefix("expected \(option.type.text), found \(value.kind); for example, write: "))
    }

    @Test func refusesAnUnknownChoice() {
        let found = problems("[sharing]\nsession = \"User\"")
        #expect(
            found.map(\.description) == [
                "line 2: sharing.session: expected \"user\" or \"client\" or \"ask\", found \"User\"; "
                    + "for example, write: session = \"user\""
            ])
    }
}
