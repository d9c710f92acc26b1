import ArgumentParser
import Glibc
import WatchwordProtocol

/// The options of `watchword fetch`: curl's names, with curl's meaning.
struct FetchOptions: ParsableArguments {
    @Argument(help: "What to fetch. Several are fetched one after the other; -Z fetches them at once.")
    var urls: [String]

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

    @Option(help: ArgumentHelp("How many redirects to follow with -L.", valueName: "number"))
    var maxRedirs = Limits.defaultRedirects

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

    /// What is to be fetched. Passwords that are missing are asked for at the terminal.
    func items(_ requests: [BodyOptions.Request], interrupt: Int32) throws -> [FetchItem] {
        var common = FetchRunParams(url: "")
        common.maxRedirects = location ? maxRedirs : 0
        if let maxTime { common.timeoutMs = max(1, Int((maxTime * 1000).rounded(.up))) }
        if verbose { common.notify = [.headers, .redirect] }
        if verbose || WaitNotice.hasReader { common.notify.append(.waiting) }
        pace.set(&common)
        let taken = SecretArguments.taken
        common.credential = try login.credential(taken, interrupt: interrupt)
        common.methods = login.methods
        common.proxy = try proxy.choice(taken, interrupt: interrupt)
        common.tls = try tls.params(taken, keep: login.keep)
        common.headers = fields.added(to: try HeaderArgument.fields(header))
        let headerFile = report.dumpHeader.map(HeaderFile.init)
        return try urls.indices.map { index in
            var item = try item(at: index, requests[index], common, taken)
            item.headerFile = headerFile
            return item
        }
    }

    private func item(
        at index: Int, _ request: BodyOptions.Request, _ common: FetchRunParams, _ taken: SecretArguments.Taken
    ) throws -> FetchItem {
        let url = urls[index]
        var params = common
        params.url = request.url
        params.userInfo = taken.userInfo(url, number: urls[..<index].count { $0 == url })
        params.method = self.request ?? (head ? "HEAD" : body.method(at: index) ?? "GET")
        Self.setContentType(&params.headers, request.content)
        var item = FetchItem(params: params, content: request.content, name: RemoteName.of(url) ?? url)
        switch files.place(at: index) {
        case .standardOutput: break
        case .file(let name): item.file = name
        case .remoteName:
            guard let name = RemoteName.of(url) else {
                complain("-O finds no file name at the end of \(DisplayURL.text(url)). Give -o.")
                throw ExitCode(ExitStatus.writeError)
            }
            item.file = name
        }
        if let continueAt = files.continueAt {
            item.resume = Int(continueAt).map { .atByte($0) } ?? .whereItEnded
        }
        item.createsFolders = files.createDirs
        item.showsHeader = include || self.head
        item.writeOut = try report.format()
        item.keepsErrorBodies = failWithBody
        (item.failsOnErrors, item.printsJSON, item.retry) = (fail || failWithBody, json, retry.policy)
        return item
    }

    /// A bar on the terminal would stand in the middle of what is written there.
    func showsProgress(_ items: [FetchItem]) -> Bool {
        let isMixed = isatty(STDOUT_FILENO) == 1 && items.contains { $0.file == nil }
        return !pace.silent && !pace.noProgressMeter && !json && !isMixed
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
        guard !urls.isEmpty else { throw ValidationError("Give a URL to fetch.") }
        if files.continueAt != nil {
            guard body.method(at: 0) == nil, !head, !json, !include, !pace.compressed else {
                throw ValidationError("-C goes without a body, -I, -i, --json and --compressed.")
            }
        }
        guard !fail || !failWithBody else { throw ValidationError("Give -f or --fail-with-body, not both.") }
        guard !head || body.method(at: 0) == nil else { throw ValidationError("-I goes without a body.") }
        if let maxTime, !(maxTime > 0 && maxTime <= 86_400) {
            throw ValidationError("-m takes seconds above 0, and at most 86400.")
        }
        guard (0...Limits.redirects).contains(maxRedirs) else {
            throw ValidationError("--max-redirs takes 0 to \(Limits.redirects).")
        }
    }
}
