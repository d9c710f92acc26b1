import ArgumentParser
import Glibc
import WatchwordProtocol

/// From options to fetches.
extension FetchOptions {
    /// The URLs of the command, with `{}` and `[]` in them taken for what they stand for.
    func targets() throws -> [FetchTarget] {
        let targets = try FetchTarget.all(urls, places)
        let taken = SecretArguments.taken
        let isClear = targets.allSatisfy {
            let hasUser = taken.userInfo($0.given, number: $0.repetition) != nil
            return !$0.holdsUser && (places.globoff || FetchTarget.isClear($0.given, hasUser: hasUser))
        }
        guard isClear else {
            complain("a URL with a user has no {} or [] in front of its path; write the URLs apart")
            throw ExitCode(ExitStatus.badURL)
        }
        if places.disallowUsernameInUrl,
            targets.contains(where: { taken.userInfo($0.given, number: $0.repetition) != nil })
        {
            complain("a URL holds a user, which --disallow-username-in-url forbids")
            throw ExitCode(ExitStatus.loginDenied)
        }
        return targets
    }

    /// What is to be fetched. Passwords that are missing are asked for at the terminal.
    func items(
        _ targets: [FetchTarget], _ requests: [BodyOptions.Request], interrupt: Int32
    ) throws -> [FetchItem] {
        var common = FetchRunParams(url: "")
        common.maxRedirects = location ? Self.redirects(maxRedirs) : 0
        common.redirects = try places.redirects(keepsMethod: request != nil)
        common.connectTimeoutMs = places.connectTimeout.flatMap(Self.milliseconds)
        let writeOut = try report.format()
        if let maxTime, maxTime > 0 { common.timeoutMs = max(1, Int((maxTime * 1000).rounded(.up))) }
        if verbose { common.notify.append(.redirect) }
        let showsRedirects = location && (include || head || report.dumpHeader != nil)
        if verbose || showsRedirects || writeOut?.needsExchanges ?? false { common.notify.append(.exchanges) }
        if verbose || WaitNotice.hasReader { common.notify.append(.waiting) }
        pace.set(&common)
        let taken = SecretArguments.taken
        common.credential = try login.credential(taken, interrupt: interrupt)
        common.methods = login.methods
        common.proxy = try proxy.choice(taken, interrupt: interrupt)
        common.tls = try tls.params(taken, keep: login.keep)
        let fields = self.fields.added(to: try HeaderArgument.fields(header))
        common.headers = fields.sent
        common.omitHeaders = fields.omitted
        let headerFile = report.dumpHeader.map(HeaderFile.init)
        return try zip(targets, requests).map { target, request in
            var item = try item(target, request, common, taken, hasType: !fields.removes("Content-Type"))
            item.headerFile = headerFile
            item.writeOut = writeOut
            return item
        }
    }

    /// curl takes any number, and -1 for all; the broker follows so many at most.
    private static func redirects(_ number: Int) -> Int {
        number < 0 || number > Limits.redirects ? Limits.redirects : number
    }

    private static func milliseconds(_ seconds: Double) -> Int? {
        seconds > 0 ? max(1, Int((seconds * 1000).rounded(.up))) : nil
    }

    private func item(
        _ target: FetchTarget, _ request: BodyOptions.Request, _ common: FetchRunParams,
        _ taken: SecretArguments.Taken, hasType: Bool
    ) throws -> FetchItem {
        let (url, index) = (target.url, target.argument)
        try FetchTarget.check(request.url)
        var params = common
        params.url = request.url
        params.userInfo = taken.userInfo(target.given, number: target.repetition)
        params.method = self.request ?? (head ? "HEAD" : body.method(at: index) ?? "GET")
        if hasType { Self.setContentType(&params.headers, request.content) }
        var item = FetchItem(params: params, content: request.content, name: RemoteName.of(url) ?? url)
        switch files.place(at: index) {
        case .standardOutput: break
        case .file(let name): item.file = inOutputFolder(URLGlob.fileName(name, target.values))
        case .remoteName:
            guard let name = RemoteName.of(url) else {
                complain("-O finds no file name at the end of \(DisplayURL.text(url)). Give -o.")
                throw ExitCode(ExitStatus.writeError)
            }
            item.file = inOutputFolder(name)
        }
        if let continueAt = files.continueAt {
            item.resume = Int(continueAt).map { .atByte($0) } ?? .whereItEnded
        }
        item.createsFolders = files.createDirs
        item.showsHeader = include || self.head
        item.number = index
        item.refusesRedirects = location && maxRedirs == 0
        item.setsTime = files.remoteTime
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

    private func inOutputFolder(_ name: String) -> String {
        files.outputDir.map { $0.hasSuffix("/") ? $0 + name : "\($0)/\(name)" } ?? name
    }
}
