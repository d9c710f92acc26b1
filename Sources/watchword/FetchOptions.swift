import ArgumentParser
import WatchwordProtocol

/// The options of `watchword fetch`: curl's names, with curl's meaning.
struct FetchOptions: ParsableArguments {
    @Argument(help: "What to fetch.")
    var url: String

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Write the body to a file, which appears when it is complete.", valueName: "file"))
    var output: String?

    @Flag(name: .shortAndLong, help: "Show the response's header before the body.")
    var include = false

    @Flag(name: [.customShort("I"), .long], help: "Ask for the header only.")
    var head = false

    @Option(name: [.customShort("X"), .long], help: ArgumentHelp("The method.", valueName: "method"))
    var request: String?

    @Option(
        name: [.customShort("H"), .long],
        help: ArgumentHelp("A header field, \"Name: value\". Can be repeated.", valueName: "field"))
    var header: [String] = []

    @Option(
        name: .shortAndLong, help: ArgumentHelp("Data to post; @file reads a file. Can be repeated.", valueName: "data")
    )
    var data: [String] = []

    @Flag(name: [.customShort("L"), .long], help: "Follow redirects.")
    var location = false

    @Option(help: ArgumentHelp("How many redirects to follow with -L.", valueName: "number"))
    var maxRedirs = Limits.defaultRedirects

    @Option(name: [.customShort("m"), .long], help: ArgumentHelp("Time on the network in all.", valueName: "seconds"))
    var maxTime: Double?

    @Flag(name: .shortAndLong, help: "End with code 22 for a status of 400 and above, without the body.")
    var fail = false

    @Flag(name: .shortAndLong, help: "Say what happens, on standard error.")
    var verbose = false

    @Flag(help: "Print the whole result of the broker as JSON.")
    var json = false

    @OptionGroup(title: "LOG-IN") var login: LoginOptions
    @OptionGroup(title: "PROXY") var proxy: ProxyOptions
    @OptionGroup(title: "TLS") var tls: TLSOptions

    /// What the broker is asked for. Passwords that are missing are asked for at the terminal.
    func params(interrupt: Int32) throws -> FetchRunParams {
        let taken = SecretArguments.taken
        var params = FetchRunParams(url: url)
        params.userInfo = taken.userInfo
        params.body = try RequestBody.joined(data)
        params.method = request ?? (head ? "HEAD" : params.body == nil ? "GET" : "POST")
        params.headers = try header.map(Self.field)
        if params.body != nil && params.headers.firstValue(of: "Content-Type") == nil {
            params.headers.append(HeaderField("Content-Type", "application/x-www-form-urlencoded"))
        }
        params.maxRedirects = location ? maxRedirs : 0
        if let maxTime { params.timeoutMs = max(1, Int((maxTime * 1000).rounded(.up))) }
        if verbose { params.notify = [.headers, .redirect] }
        params.credential = try login.credential(taken, interrupt: interrupt)
        params.methods = login.methods
        params.proxy = try proxy.choice(taken, interrupt: interrupt)
        params.tls = try tls.params(taken, keep: login.keep)
        return params
    }

    func validate() throws {
        if let maxTime, !(maxTime > 0 && maxTime <= 86_400) {
            throw ValidationError("-m takes seconds above 0, and at most 86400.")
        }
        guard (0...Limits.redirects).contains(maxRedirs) else {
            throw ValidationError("--max-redirs takes 0 to \(Limits.redirects).")
        }
    }

    private static func field(_ text: String) throws -> HeaderField {
        guard let colon = text.firstIndex(of: ":") else {
            throw ValidationError("\"\(text.shortened)\" is not a header field. Write \"Name: value\".")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return HeaderField(String(text[..<colon]), String(value))
    }
}
