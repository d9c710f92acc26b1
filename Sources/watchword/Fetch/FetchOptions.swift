import ArgumentParser
import Glibc
import WatchwordProtocol

/// The options of `watchword fetch`: curl's names, with curl's meaning.
struct FetchOptions: ParsableArguments {
    @Argument(help: "What to fetch. Several are fetched one after the other; -Z fetches them at once.")
    var urls: [String] = []

    @Flag(name: .shortAndLong, help: "Show the response's header before the body.")
    var include = false

    @Flag(help: "End with code 22 for a status of 400 and above, and write the body all the same.")
    var failWithBody = false

    @Flag(name: [.customShort("I"), .long], help: "Ask for the header only.")
    var head = false

    @Option(name: [.customShort("X"), .long], help: ArgumentHelp("The method.", valueName: "method"))
    var request: String?

    @OptionGroup(title: "HEADER") var fields: HeaderOptions

    @Option(
        name: [.customShort("H"), .long],
        help: ArgumentHelp(
            "A header field, \"Name: value\"; @file reads a file with one in each line, and keeps them out of the argument list. Can be repeated.",
            valueName: "field"))
    var header: [String] = []

    @Flag(name: [.customShort("L"), .long], help: "Follow redirects.")
    var location = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How many redirects to follow with -L; never more than 50.", valueName: "number"))
    var maxRedirs = Limits.redirects

    @OptionGroup(title: "REDIRECTS AND URLS") var places: PlaceOptions

    @Option(
        name: [.customShort("m"), .long],
        help: ArgumentHelp(
            "Time in all, waiting for other programs included. The time of a question of its own does not count.",
            valueName: "seconds"))
    var maxTime: Double?

    @Flag(name: .shortAndLong, help: "End with code 22 for a status of 400 and above, without the body.")
    var fail = false

    @Flag(name: .shortAndLong, help: "Say what happens, on standard error.")
    var verbose = false

    @Flag(help: "End with the first fetch that fails.")
    var failEarly = false

    @Flag(help: "Print the whole result of the broker as JSON.")
    var json = false

    @OptionGroup(title: "FILES") var files: FileOptions
    @OptionGroup(title: "REPORT") var report: ReportOptions
    @OptionGroup(title: "PACE") var pace: PaceOptions
    @OptionGroup(title: "RETRIES") var retry: RetryOptions
    @OptionGroup(title: "BODY") var body: BodyOptions
    @OptionGroup(title: "LOG-IN") var login: LoginOptions
    @OptionGroup(title: "PROXY") var proxy: ProxyOptions
    @OptionGroup(title: "TLS") var tls: TLSOptions

    func validate() throws {
        guard !urls.isEmpty else { throw ValidationError("Give a URL to fetch.") }
        if files.continueAt != nil {
            guard body.method(at: 0) == nil, !head, !json, !include, !pace.compressed else {
                throw ValidationError("-C goes without a body, -I, -i, --json and --compressed.")
            }
        }
        guard !fail || !failWithBody else { throw ValidationError("Give -f or --fail-with-body, not both.") }
        guard !head || body.method(at: 0) == nil else { throw ValidationError("-I goes without a body.") }
        for (seconds, name) in [(maxTime, "-m"), (places.connectTimeout, "--connect-timeout")] {
            if let seconds, !(seconds >= 0 && seconds <= 86_400) {
                throw ValidationError("\(name) takes seconds, at most 86400; 0 means no limit.")
            }
        }
        guard maxRedirs >= -1 else { throw ValidationError("--max-redirs takes a number from 0 on, or -1.") }
    }
}
