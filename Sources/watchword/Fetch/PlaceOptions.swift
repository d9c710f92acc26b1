import ArgumentParser
import WatchwordProtocol

/// Which URLs are meant, and where redirects may lead.
struct PlaceOptions: ParsableArguments {
    @Flag(name: .shortAndLong, help: "Take {}, [] and \\ in URLs as they are.")
    var globoff = false

    @Option(
        help: ArgumentHelp("The scheme of URLs without one; https unless given.", valueName: "http|https"),
        completion: .list(["http", "https"]))
    var protoDefault: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The schemes to use, as in =https; - before one excludes it.", valueName: "schemes"))
    var proto: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The same for redirects, beside --proto.", valueName: "schemes"))
    var protoRedir: String?

    @Flag(help: "Send a POST again as it is after a redirect with status 301.")
    var post301 = false

    @Flag(help: "The same with status 302.")
    var post302 = false

    @Flag(help: "The same with status 303.")
    var post303 = false

    @Flag(name: .customLong("disallow-username-in-url"), help: "End with code 67 if a URL holds a user.")
    var disallowUsernameInUrl = false

    @Option(help: ArgumentHelp("Time for the connection; 0 means no limit of its own.", valueName: "seconds"))
    var connectTimeout: Double?

    func schemes() throws -> Set<String> { Self.schemes(proto) }

    func redirects(keepsMethod: Bool) throws -> RedirectParams {
        var redirects = RedirectParams()
        redirects.keepMethod = keepsMethod
        redirects.keepPost = Set([(post301, 301), (post302, 302), (post303, 303)].filter(\.0).map(\.1))
        if proto != nil || protoRedir != nil {
            redirects.schemes = Self.schemes(proto).intersection(Self.schemes(protoRedir))
        }
        return redirects
    }

    /// curl(1), "--proto": `=` replaces the list, `+` and nothing add, `-` takes away; other schemes are not among those that are
    /// used anyway.
    static func schemes(_ text: String?) -> Set<String> {
        var schemes: Set<String> = ["http", "https"]
        for word in text?.split(separator: ",") ?? [] {
            let name = word.drop { "=+-".contains($0) }.lowercased()
            let named: Set<String> = name == "all" ? ["http", "https"] : Set([name]).intersection(["http", "https"])
            switch word.first {
            case "-": schemes.subtract(named)
            case "=": schemes = named
            default: schemes.formUnion(named)
            }
        }
        return schemes
    }
}
