internal import COAuthPresets
public import WatchwordCore
internal import WatchwordProtocol

/// Reads the tables `[oauth."URL"]`.
enum OAuthTables {
    /// The name of the table that contains them.
    static let name = "oauth"
    /// The form of their headers, for messages.
    static let header = "oauth.\"URL\""

    /// Adds the rules to the settings, those of the longest resources first, and returns all problems.
    static func apply(_ entries: [TOMLEntry], to settings: inout Settings) -> [SettingsProblem] {
        let entries = entries.filter { $0.path.utf8.starts(with: "\(name).".utf8) }.map { (parts: $0.parts, entry: $0) }
        var readers: [OAuthTableReader] = []
        var problems: [SettingsProblem] = []
        for (parts, entry) in entries where parts.count == 2 {
            guard case .key(let url) = parts[1] else { continue }
            do throws(Refusal) {
                let reader = try OAuthTableReader(url, entry)
                if let first = readers.first(where: { $0.rule.resource == reader.rule.resource }) {
                    throw Refusal("duplicate of the table in line \(first.line); remove one")
                }
                readers.append(reader)
            } catch {
                // The key may contain a password.
                problems.append(SettingsProblem(line: entry.line, key: name, error.text))
            }
        }
        for index in readers.indices {
            for (parts, entry) in entries where parts.count == 3 && parts[1] == .key(readers[index].url) {
                guard case .key(let option) = parts[2] else { continue }
                readers[index].read(option, entry)
            }
            readers[index].checkCombination()
        }
        let complete = readers.filter(\.problems.isEmpty)
        settings.oauthRules = OAuthRule.inOrder(complete.map(\.rule))
        settings.clientSecretFiles = complete.compactMap(\.secretFile)
        return problems + readers.flatMap(\.problems)
    }
}

extension OAuthRule {
    /// Sorts rules so that the first one that matches a URL is the one for the longest path.
    static func inOrder(_ rules: [OAuthRule]) -> [OAuthRule] {
        rules.sorted { left, right in
            let (left, right) = (left.resource, right.resource)
            return left.utf8.count == right.utf8.count ? left < right : left.utf8.count > right.utf8.count
        }
    }
}

/// One table.
private struct OAuthTableReader {
    /// The key of the table, as it was written.
    let url: String
    let line: Int
    private(set) var problems: [SettingsProblem] = []
    /// The path of the table, for messages.
    private let path: String
    private let pathLength: Int
    private var draft = OAuthDraft()
    /// The lines of the options of the table.
    private var lines: [String: Int] = [:]

    var rule: OAuthRule { draft.rule }

    var secretFile: ClientSecretFile? {
        draft.secretFile.map { file in
            ClientSecretFile(
                resource: rule.resource, path: file, line: lines[OAuthDraft.secretKey] ?? line,
                key: "\(path).\(OAuthDraft.secretKey)")
        }
    }

    /// - Throws: `Refusal` for a key that is not a URL, and for an entry that is not a table.
    init(_ url: String, _ entry: TOMLEntry) throws(Refusal) {
        let resource = try OAuthURL(url)
        guard case .table = entry.value else {
            throw Refusal(
                "expected a table, not a value or a list of tables; write [\(OAuthTables.header)] on a line of its own, and "
                    + "its options on the lines below")
        }
        (self.url, line, path, pathLength) = (url, entry.line, entry.path.shortened, entry.path.utf8.count)
        draft.rule = OAuthRule(resource: resource.withoutTrailingSlash)
    }

    mutating func read(_ name: String, _ entry: TOMLEntry) {
        lines[name] = entry.line
        let written = String(decoding: entry.path.utf8.dropFirst(pathLength + 1), as: UTF8.self)
        problems += draft.read(name, written: written, entry, in: path, header: "[\(OAuthTables.header)]")
    }

    /// Checks what an option requires of others, unless one of them has a problem.
    mutating func checkCombination() {
        guard problems.isEmpty else { return }
        if rule.flow == .registry { return checkRegistry() }
        let hasClientID = rule.clientID != nil
        if !hasClientID && !rule.registersClient {
            missing(
                "client-id",
                "add the id under which Watchword is registered at the authorization server, or register = true")
        }
        if hasClientID && rule.registersClient {
            report(
                "register", "a client that registers itself gets its id from the server; remove client-id or register")
        }
        if rule.flow == .device && !hasClientID && rule.registersClient {
            report("register", "a client registers itself for the browser only; add client-id, or remove flow")
        }
        if draft.secretFile != nil && !hasClientID {
            report(
                OAuthDraft.secretKey,
                "a secret belongs to a client id; add client-id, or remove \(OAuthDraft.secretKey)")
        }
        if draft.secretFile != nil && rule.issuer == nil {  // guard: oauth-secret-needs-issuer
            report(
                OAuthDraft.secretKey,
                "without issuer, the server at \(rule.resource.shortened) would choose who gets the secret; add issuer")
        }
        if rule.flow == .clientCredentials && draft.secretFile == nil {
            missing(OAuthDraft.secretKey, "flow = \"client-credentials\" logs in with it; add it")
        }
        if rule.redirectPort != nil && rule.flow != nil && rule.flow != .browser {
            report("redirect-port", "only flow = \"browser\" uses a port; remove redirect-port")
        }
    }

    private mutating func checkRegistry() {
        for name in lines.keys.sorted() where name != "issuer" && name != "flow" {
            report(name, "flow = \"registry\" has no such option; remove it")
        }
        guard let issuer = rule.issuer, let url = try? OAuthURL(issuer) else {
            return missing(
                "issuer",
                "add the origin of the token service; for example, write: issuer = \"https://auth.docker.io\"")
        }
        guard url.path.isEmpty || url.path == "/" else {
            return report(
                "issuer",
                "expected the origin of the token service, without a path; write: issuer = \"\(url.origin)\"")
        }
        draft.rule.issuer = url.origin
    }

    private mutating func missing(_ option: String, _ advice: String) {
        problems.append(SettingsProblem(line: line, key: path, "\(option) is missing; \(advice)"))
    }

    private mutating func report(_ option: String, _ text: String) {
        problems.append(SettingsProblem(line: lines[option] ?? line, key: "\(path).\(option)", text))
    }
}

/// The rules for well-known hosts, from contrib/oauth-presets.toml.
public enum OAuthPresets {
    /// The rules in the order of a configuration; empty if the file has a problem, which a test excludes.
    public static let rules: [OAuthRule] = ((try? settings.get()) ?? Settings()).oauthRules

    static var settings: Result<Settings, InvalidSettings> {
        var count = 0
        let bytes = watchword_oauth_presets(&count)
        return SettingsFile.parse(Array(UnsafeBufferPointer(start: bytes, count: count)))
    }

    /// Returns these rules and the presets of the other resources.
    public static func completing(_ rules: [OAuthRule]) -> [OAuthRule] {
        let resources = Set(rules.map(\.resource))
        return OAuthRule.inOrder(rules + Self.rules.filter { !resources.contains($0.resource) })
    }
}
