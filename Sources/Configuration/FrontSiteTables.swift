internal import WatchwordProtocol

/// Reads the tables `[[front.site]]`.
enum FrontSiteTables {
    static let keys = ["listen", "url", "restricted", "consent", "methods", "paths", "fields", "budget"]

    private static let list = "front.site"

    /// Adds the sites to the settings, and returns all problems.
    static func apply(_ entries: [TOMLEntry], to settings: inout Settings) -> [SettingsProblem] {
        var (sites, problems) = FrontSiteReader.read(entries, in: list)
        settings.frontSites = sites
        let addresses = settings.frontSites.map(\.address) + [settings.frontProxy].compactMap { $0 }
        for (index, address) in addresses.enumerated() where addresses[..<index].contains(address) {
            problems.append(
                SettingsProblem(
                    line: nil, key: list, "two fronts listen at \(address.text); choose another address for one"))
        }
        return problems
    }
}

/// One table.
private struct FrontSiteReader: ListedTableReader {
    private let line: Int
    private var address: FrontAddress?
    private var site = FrontSite(url: "")
    private var hasListen = false
    private(set) var problems: [SettingsProblem] = []

    init(line: Int) { self.line = line }

    mutating func read(_ key: String, _ entry: TOMLEntry) {
        switch (key, entry.value) {
        case ("listen", .string(let text)):
            hasListen = true
            do throws(FrontAddress.Invalid) { address = try FrontAddress(text) } catch {
                report(key, entry, error.text)
            }
        case ("url", .string(let text)):
            site.url = text
            if !Self.isSite(text) {
                report(
                    key, entry,
                    "expected http:// or https:// with a host and a port, but without a path; for example, "
                        + "write: url = \"https://intranet.example\"")
            }
        case ("restricted", .boolean(let flag)): site.isRestricted = flag
        case ("consent", .string(FrontSite.askingConsent)): site.asksConsent = true
        case ("consent", _):
            report(
                key, entry, "expected \"ask\", or nothing: the configuration is the consent; write: consent = \"ask\"")
        case ("methods", .strings(let texts)):
            site.methods = texts.map(\.text)
            if !texts.allSatisfy({ FrontSite.isMethod($0.text) }) {
                report(key, entry, "expected methods in upper case; for example, write: methods = [\"GET\", \"HEAD\"]")
            }
        case ("paths", .strings(let texts)):
            site.paths = texts.map(\.text)
            if !texts.allSatisfy({ FrontSite.isPath($0.text) }) {
                report(
                    key, entry,
                    "expected paths that begin with a slash, without a query, dot segments and percent signs; "
                        + "for example, write: paths = [\"/api/\"]")
            }
        case ("fields", .strings(let texts)):
            site.fields = texts.map(\.text)
            if !texts.allSatisfy({ FrontSite.isField($0.text) }) {
                report(key, entry, "expected names of fields; for example, write: fields = [\"anthropic-version\"]")
            }
        case ("budget", .integer(let number)) where (1...Int64(FrontSite.largestBudget)).contains(number):
            site.budget = Int(number)
        case ("budget", _):
            report(
                key, entry,
                "expected a whole number from 1 to \(FrontSite.largestBudget); for example, write: budget = 1000")
        case (_, let value) where FrontSiteTables.keys.contains(key):
            report(key, entry, "unexpected type: \(value.kindText); see watchword-config(5)")
        default:
            report(
                key, entry,
                "unknown option; the options of [[front.site]] are \(FrontSiteTables.keys.joined(separator: ", "))")
        }
    }

    private mutating func report(_ key: String, _ entry: TOMLEntry, _ text: String) {
        problems.append(SettingsProblem(line: entry.line, key: "front.site.\(key.shortened)", text))
    }

    /// Returns the site, if there are no problems.
    mutating func setting() -> FrontSiteSetting? {
        for (key, isMissing) in [("listen", !hasListen), ("url", site.url.isEmpty)] where isMissing {
            problems.append(SettingsProblem(line: line, key: "front.site", "\(key) is missing; add it"))
        }
        if site.asksConsent, !site.isRestricted {
            problems.append(
                SettingsProblem(
                    line: line, key: "front.site", "consent needs a restricted front; add: restricted = true"))
        }
        guard problems.isEmpty, let address else { return nil }
        return FrontSiteSetting(address: address, site: site)
    }

    private static func isSite(_ text: String) -> Bool {
        guard let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) else { return false }
        let rest = text.dropFirst(scheme.count)
        let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
        return !authority.isEmpty && !authority.contains { "/?#@ ".contains($0) }
    }
}
