import ArgumentParser
import CPlatform
import Glibc
import WatchwordProtocol

/// `watchword fetch`, with curl's options and their meaning. The most common options are not in a group, because the help lists
/// options outside groups first. They are not in a type of their own either: in a debug build, ArgumentParser checks each level of
/// types several times for each level above it.
struct FetchSubcommand: ParsableCommand {
    @Argument(help: "The URLs to fetch, one after the other; with -Z, concurrently.")
    var urls: [String] = []

    @Flag(name: .shortAndLong, help: "Show the response's header before the body.")
    var include = false

    @Flag(help: "Exit with code 22 if the status is 400 or above, but write the body.")
    var failWithBody = false

    @Flag(name: [.customShort("I"), .long], help: "Request only the header.")
    var head = false

    @Option(name: [.customShort("X"), .long], help: ArgumentHelp("The request method.", valueName: "method"))
    var request: String?

    @OptionGroup(title: "HEADER") var fields: HeaderOptions

    @Option(
        name: [.customShort("H"), .long],
        help: ArgumentHelp(
            "A header field, \"Name: value\"; @file reads one field per line from a file, whose content other users cannot see in the process list. Can be repeated.",
            valueName: "field"))
    var header: [String] = []

    @Flag(name: [.customShort("L"), .long], help: "Follow redirects.")
    var location = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The maximum number of redirects to follow with -L, up to 50.", valueName: "number"))
    var maxRedirs = Limits.redirects

    @OptionGroup(title: "REDIRECTS AND URLS") var places: PlaceOptions

    @Option(
        name: [.customShort("m"), .long],
        help: ArgumentHelp(
            "The time limit for the whole fetch. It includes the time spent waiting for other programs, but not for answers to the prompts of this fetch.",
            valueName: "seconds"))
    var maxTime: Double?

    @Flag(name: .shortAndLong, help: "Exit with code 22 if the status is 400 or above, without writing the body.")
    var fail = false

    @Flag(
        name: .shortAndLong, help: "Write the headers of requests and responses, and other details, to standard error.")
    var verbose = false

    @Flag(help: "Exit when the first fetch fails.")
    var failEarly = false

    @Flag(help: "Print the broker's complete result as JSON.")
    var json = false

    @OptionGroup(title: "FILES") var files: FileOptions
    @OptionGroup(title: "REPORT") var report: ReportOptions
    @OptionGroup(title: "TRANSFER") var pace: PaceOptions
    @OptionGroup(title: "RETRIES") var retry: RetryOptions
    @OptionGroup(title: "BODY") var body: BodyOptions
    @OptionGroup(title: "LOGIN") var login: LoginOptions
    @OptionGroup(title: "PROXY") var proxy: ProxyOptions
    @OptionGroup(title: "TLS") var tls: TLSOptions
    @OptionGroup var broker: BrokerStartOptions

    func validate() throws {
        guard !urls.isEmpty else { throw ValidationError("no URL given") }
        if files.continueAt != nil {
            guard body.method(at: 0) == nil, !head, !json, !include, !pace.compressed else {
                throw ValidationError("-C cannot be used with a request body, -I, -i, --json or --compressed")
            }
        }
        guard !fail || !failWithBody else { throw ValidationError("use -f or --fail-with-body, not both") }
        guard !head || body.method(at: 0) == nil else { throw ValidationError("-I cannot be used with a request body") }
        for (seconds, name) in [(maxTime, "-m"), (places.connectTimeout, "--connect-timeout")] {
            if let seconds, !(seconds >= 0 && seconds <= 86_400) {
                throw ValidationError("\(name) takes 0 to 86400 seconds; 0 means no limit")
            }
        }
        guard maxRedirs >= -1 else {
            throw ValidationError("--max-redirs takes 0 or more, or -1 for the maximum of \(Limits.redirects)")
        }
    }
}

extension FetchSubcommand {
    static let configuration = CommandConfiguration(
        "fetch", "Fetch a URL; ask at the terminal when a server or proxy requires a login.",
        """
        Also asks about untrusted server certificates and for client certificates. Without a terminal, the desktop \
        agent asks, if one is running. Exit codes are curl's: 0 for any response, 2 for an invalid command line, 6 for \
        an unknown host, 7 for a failed connection, 28 for a timeout, 58 for a client certificate, 60 for an untrusted \
        server, 67 for a missing login, 90 for a key other than the pinned one, 97 for a proxy, and 120, which curl does \
        not use, for a login that is not in the keyring in spite of --keep keyring. The code is also 67 if the response \
        has status 401 or 407 and the command selects a user, a token or a scheme.

        The options are curl's. Options that have no effect here are ignored, with a note that -s suppresses; options \
        that would change which servers are trusted or which data is sent are refused. watchword-curl(7) lists all options \
        and differences.

        Other users can read the arguments of a program (ps). Arguments that may be secret are overwritten at startup: \
        the values of -u, -U, -x, -E, --key, --pass, --oauth2-bearer, -H, -b, -F, -d and its variants, and the user, \
        password and query of URLs. Until then they are readable for some milliseconds, and shells store them in their \
        history. Safer alternatives are the prompt at the terminal, -H @file, -d @file, -d @-, and the command \
        watchword credentials store --password-stdin.
        """,
        examples: "watchword fetch https://intranet.example/report",
        "watchword fetch -Z -O https://intranet.example/a.iso -O https://intranet.example/b.iso",
        "watchword fetch -F name=value -F file=@report.pdf https://intranet.example/upload",
        "watchword fetch -L --keep keyring https://intranet.example/report",
        "watchword fetch -x socks5h://gate.example https://intranet.example/report",
        "watchword fetch --cert me.pem --key me.key https://intranet.example/report")

    func run() throws {
        if pace.silent { StandardError.beWithoutNotes() }
        try files.redirectErrors()
        if pace.silent && !pace.showError { StandardError.beSilent() }
        for note in CurlArguments.current?.notes ?? [] { StandardError.note(note) }
        let targets = try targets()
        // Reading the bodies may block on a terminal or a pipe, so signals are intercepted only afterwards.
        let requests = try body.requests(for: targets.map(\.url), arguments: targets.map(\.argument))
        let interrupt = watchword_interrupt_descriptor()
        let items = try items(targets, requests, interrupt: interrupt)
        try FetchBatch(
            items: items, location: broker.socket.location, mayStart: !broker.noStart,
            showsProgress: showsProgress(items), storage: login.keep, isInsecure: tls.insecure,
            isBarOnly: pace.progressBar, isVerbose: verbose,
            maxConcurrent: pace.parallel ? pace.parallelMax : 1, endsEarly: failEarly
        ).run(interrupt: interrupt)
    }
}
