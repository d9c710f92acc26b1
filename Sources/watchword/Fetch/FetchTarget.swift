import ArgumentParser
import WatchwordProtocol

/// One URL to fetch.
struct FetchTarget: Equatable {
    /// With a scheme.
    var url: String
    /// As it stands in the command, without user and password.
    var given: String
    /// The number of the argument that it comes from, among the URLs of the command.
    var argument: Int
    /// How many arguments before it were the same.
    var repetition: Int
    /// What `{}` and `[]` stand for in it.
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

    /// Whether the user of this URL is for one server only. A pattern in front of the path may stand for others, and hides users.
    static func isClear(_ given: String, hasUser: Bool) -> Bool {
        let server = server(given)
        let hasPattern = server.indices.contains { index in
            server[index] == "{"
                || server[index] == "[" && !URLGlob.isAddress(server[server.index(after: index)...])
        }
        return !(hasUser && hasPattern)
    }

    /// Whether user information has come out of a pattern.
    var holdsUser: Bool { Self.server(url).contains("@") }

    /// What stands in front of the path.
    private static func server(_ url: String) -> Substring {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        return url[..<(url[start...].firstIndex { "/?#".contains($0) } ?? url.endIndex)]
    }

    private static func matches(_ url: String, _ options: PlaceOptions) throws -> [URLGlob.Match] {
        if options.globoff { return [URLGlob.Match(url: url, values: [])] }
        do throws(URLGlob.Problem) { return try URLGlob(url).matches } catch {
            complain("\(error.text): \(DisplayURL.text(url))")
            throw ExitCode(ExitStatus.badURL)
        }
    }

    /// https where the command names no scheme.
    private static func withScheme(_ url: String, _ options: PlaceOptions) throws -> String {
        var url = url
        if url.firstRange(of: "://") == nil {
            // It was not recognized as a URL when secrets were taken out of the argument list.
            if url.prefix(while: { !"/?#".contains($0) }).contains("@") {
                complain("a URL with a user needs its scheme; write https:// in front of it")
                throw ExitCode(ExitStatus.badURL)
            }
            let scheme = options.protoDefault ?? "https"
            guard ["http", "https"].contains(scheme.lowercased()) else {
                complain("--proto-default takes http or https")
                throw ExitCode(ExitStatus.unsupportedProtocol)
            }
            url = "\(scheme)://\(url)"
        }
        let scheme = url.prefix { $0 != ":" }.lowercased()
        guard try options.schemes().contains(scheme) else {
            complain("the scheme \(scheme.shortened) is not supported, or excluded by --proto")
            throw ExitCode(ExitStatus.unsupportedProtocol)
        }
        return url
    }

    /// As curl does, also where an option has added to the URL.
    static func check(_ url: String) throws {
        guard !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            complain("a URL has no blanks; write %20 for each")
            throw ExitCode(ExitStatus.badURL)
        }
    }
}
