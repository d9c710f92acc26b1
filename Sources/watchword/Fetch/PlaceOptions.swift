import ArgumentParser
import WatchwordProtocol

/// The options for URLs, redirects and connecting.
struct PlaceOptions: ParsableArguments {
    @Flag(name: .shortAndLong, help: "Do not expand {}, [] and \\ in URLs.")
    var globoff = false

    @Option(
        help: ArgumentHelp("The scheme for URLs without one; default https.", valueName: "http|https"),
        completion: .list(["http", "https"]))
    var protoDefault: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The allowed schemes, such as =https; \"-\" excludes a scheme.", valueName: "schemes"))
    var proto: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The schemes allowed for redirects, if --proto allows them.", valueName: "schemes"))
    var protoRedir: String?

    @Flag(help: "Repeat a POST unchanged after a redirect with status 301.")
    var post301 = false

    @Flag(help: "Repeat a POST unchanged after a redirect with status 302.")
    var post302 = false

    @Flag(help: "Repeat a POST unchanged after a redirect with status 303.")
    var post303 = false

    @Flag(name: .customLong("disallow-username-in-url"), help: "Exit with code 67 if a URL contains a user.")
    var disallowUsernameInUrl = false

    @Option(help: ArgumentHelp("The time limit for connecting; 0 means no separate limit.", valueName: "seconds"))
    var connectTimeout: Double?

    func schemes() throws -> Set<String> { Self.schemes(proto) }

    func redirects(preservesMethod: Bool) throws -> RedirectParams {
        var redirects = RedirectParams()
        redirects.keepMethod = preservesMethod
        redirects.keepPost = Set([(post301, 301), (post302, 302), (post303, 303)].filter(\.0).map(\.1))
        if proto != nil || protoRedir != nil {
            redirects.schemes = Self.schemes(proto).intersection(Self.schemes(protoRedir))
        }
        return redirects
    }

    /// Parses a list of schemes (curl(1), "--proto"): `=` replaces the list, `+` or no prefix adds to it, `-` removes from it.
    /// Schemes other than http and https are ignored.
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
