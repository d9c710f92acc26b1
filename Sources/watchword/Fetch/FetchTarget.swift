import ArgumentParser
import WatchwordProtocol

/// One URL to fetch.
struct FetchTarget: Equatable {
    /// The expanded URL, with a scheme.
    var url: String
    /// The URL argument from which it was expanded, without user and password.
    var given: String
    /// The index of that argument among the URLs of the command.
    var argument: Int
    /// The number of equal URL arguments before that one.
    var repetition: Int
    /// The values of `{}` and `[]` in this URL.
    var values: [String] = []

    static func all(_ urls: [String], _ options: PlaceOptions) throws -> [FetchTarget] {
        try urls.enumerated().flatMap { index, given in
            let repetition = urls[..<index].count { $0 == given }
            return try matches(given, options).map { match in
                FetchTarget(
                    url: try withScheme(match.url, options), given: given, argument: index, repetition: repetition,
                    values: match.values)
            }
        }
    }

    /// Whether the user in this URL is sent to one server only. A pattern before the path may expand to several servers.
    static func isClear(_ given: String, hasUser: Bool) -> Bool {
        let server = server(given)
        let hasPattern = server.indices.contains { index in
            server[index] == "{"
                || server[index] == "[" && !URLGlob.isAddress(server[server.index(after: index)...])
        }
        return !(hasUser && hasPattern)
    }

    /// Whether the expanded URL contains user information, which then comes from a pattern: `SecretArguments` has removed any
    /// other.
    var holdsUser: Bool { Self.server(url).contains("@") }

    /// Returns the part of `url` before the path.
    private static func server(_ url: String) -> Substring {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        return url[..<(url[start...].firstIndex { "/?#".contains($0) } ?? url.endIndex)]
    }

    private static func matches(_ url: String, _ options: PlaceOptions) throws -> [URLGlob.Match] {
        if options.globoff { return [URLGlob.Match(url: url, values: [])] }
        do throws(URLGlob.Problem) { return try URLGlob(url).matches } catch {
            throw ExitCode(ExitStatus.badURL, printing: "invalid URL pattern \(DisplayURL.text(url)): \(error.text)")
        }
    }

    /// Adds a scheme to a URL without one, `https` by default, and checks the scheme against `--proto`.
    private static func withScheme(_ url: String, _ options: PlaceOptions) throws -> String {
        var url = url
        if url.firstRange(of: "://") == nil {
            // `SecretArguments` extracts a user only from a URL with a scheme.
            if url.prefix(while: { !"/?#".contains($0) }).contains("@") {
                throw ExitCode(
                    ExitStatus.badURL, printing: "a URL with a user needs a scheme; write https:// before it")
            }
            let scheme = options.protoDefault ?? "https"
            guard ["http", "https"].contains(scheme.lowercased()) else {
                throw ExitCode(ExitStatus.unsupportedProtocol, printing: "--proto-default takes http or https")
            }
            url = "\(scheme)://\(url)"
        }
        let scheme = url.prefix { $0 != ":" }.lowercased()
        guard try options.schemes().contains(scheme) else {
            throw ExitCode(
                ExitStatus.unsupportedProtocol,
                printing: "scheme \(scheme.shortened) is unsupported or excluded by --proto; use http or https")
        }
        return url
    }

    /// Rejects blanks and control characters, as curl does, including those in parts that options have added.
    static func check(_ url: String) throws {
        guard !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw ExitCode(
                ExitStatus.badURL, printing: "a URL cannot contain blanks or control characters; write %20 for a blank")
        }
    }
}
