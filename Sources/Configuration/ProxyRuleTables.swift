internal import WatchwordProtocol

/// Reads the tables `[[proxy.rule]]`.
enum ProxyRuleTables {
    /// Adds the rules to the settings, and returns all problems.
    static func apply(_ entries: [TOMLEntry], to settings: inout Settings) -> [SettingsProblem] {
        var (rules, problems) = ProxyRuleReader.read(entries, in: "proxy.rule")
        settings.proxyRules = rules
        if settings.proxyPAC != nil && settings.usesDesktopProxy {
            problems.append(
                SettingsProblem(line: nil, key: "proxy.pac", "a PAC file excludes proxy.desktop; remove one of them"))
        }
        return problems
    }
}

/// One table.
private struct ProxyRuleReader: ListedTableReader {
    private let line: Int
    private var rule = ProxyRuleSetting(hosts: [], use: [])
    private(set) var problems: [SettingsProblem] = []

    init(line: Int) { self.line = line }

    mutating func read(_ key: String, _ entry: TOMLEntry) {
        switch (key, entry.value) {
        case ("hosts", .strings(let texts)):
            for text in texts {
                do throws(HostPattern.Invalid) {
                    rule.hosts.append(try HostPattern(text.text, allowsNetworks: true))
                } catch {
                    report(key, text.line, error.text)
                }
            }
        case ("use", .strings(let texts)):
            for text in texts {
                do throws(Refusal) {
                    rule.use.append(text.text == "direct" ? text.text : try ProxyURL.canonical(text.text))
                } catch {
                    report(key, text.line, "\(error.text), or \"direct\"")
                }
            }
        case ("hosts", let value), ("use", let value):
            report(key, entry.line, "expected a list of strings, found \(value.kindText); see watchword-config(5)")
        default: report(key, entry.line, "unknown option; the options of [[proxy.rule]] are hosts and use")
        }
    }

    private mutating func report(_ key: String, _ line: Int, _ text: String) {
        problems.append(SettingsProblem(line: line, key: "proxy.rule.\(key.shortened)", text))
    }

    /// Returns the rule, if there are no problems.
    mutating func setting() -> ProxyRuleSetting? {
        guard problems.isEmpty else { return nil }
        for (key, isMissing) in [("hosts", rule.hosts.isEmpty), ("use", rule.use.isEmpty)] where isMissing {
            problems.append(SettingsProblem(line: line, key: "proxy.rule", "\(key) is missing or empty; add it"))
        }
        return problems.isEmpty ? rule : nil
    }
}
