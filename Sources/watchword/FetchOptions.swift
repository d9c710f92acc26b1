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

    @OptionGroup(title: "BODY") var body: BodyOptions
    @OptionGroup(title: "LOG-IN") var login: LoginOptions
    @OptionGroup(title: "PROXY") var proxy: ProxyOptions
    @OptionGroup(title: "TLS") var tls: TLSOptions

    /// What the broker is asked for. Passwords that are missing are asked for at the terminal.
    func params(interrupt: Int32) throws -> FetchRunParams {
        let taken = SecretArguments.taken
        var params = FetchRunParams(url: try body.url(url, at: 0))
        params.userInfo = taken.userInfo(url)
        let content = try body.content(at: 0)
        params.body = try content?.bytes()
        params.method = request ?? (head ? "HEAD" : body.method(at: 0) ?? "GET")
        params.headers = try header.map(Self.field)
        Self.setContentType(&params.headers, content)
        params.maxRedirects = location ? maxRedirs : 0
        if let maxTime { params.timeoutMs = max(1, Int((maxTime * 1000).rounded(.up))) }
        if verbose { params.notify = [.headers, .redirect] }
        params.credential = try login.credential(taken, interrupt: interrupt)
        params.methods = login.methods
        params.proxy = try proxy.choice(taken, interrupt: interrupt)
        params.tls = try tls.params(taken, keep: login.keep)
        return params
    }

    /// What the command says comes first; the boundary of a form belongs to it all the same, as with curl.
    private static func setContentType(_ headers: inout [HeaderField], _ content: RequestContent?) {
        guard let type = content?.contentType else { return }
        guard let index = headers.firstIndex(where: { $0.name.lowercased() == "content-type" }) else {
            return headers.append(HeaderField("Content-Type", type))
        }
        if let boundary = type.firstRange(of: "; boundary="), !headers[index].value.contains("boundary=") {
            headers[index].value += type[boundary.lowerBound...]
        }
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
