import ArgumentParser
import Glibc
import WatchwordProtocol

/// Turns the options into fetches.
extension FetchSubcommand {
    /// Returns the URLs of the command, with `{}` and `[]` expanded.
    func targets() throws -> [FetchTarget] {
        let targets = try FetchTarget.all(urls, places)
        let taken = SecretArguments.taken
        let isClear = targets.allSatisfy {
            let hasUser = taken.userInfo($0.given, number: $0.repetition) != nil
            return !$0.holdsUser && (places.globoff || FetchTarget.isClear($0.given, hasUser: hasUser))
        }
        guard isClear else {
            throw ExitCode(
                ExitStatus.badURL,
                printing: "a URL with a user cannot have {} or [] before its path; list the URLs one by one")
        }
        if places.disallowUsernameInUrl,
            targets.contains(where: { taken.userInfo($0.given, number: $0.repetition) != nil })
        {
            throw ExitCode(
                ExitStatus.loginDenied,
                printing: "a URL contains a user, which --disallow-username-in-url forbids; use -u")
        }
        return targets
    }

    /// Returns an item for each target. Asks at the terminal for passwords that the command omits.
    func items(
        _ targets: [FetchTarget], _ requests: [BodyOptions.Request], interrupt: Int32
    ) throws -> [FetchItem] {
        var common = FetchRunParams(url: "")
        common.maxRedirects = location ? Self.redirects(maxRedirs) : 0
        common.redirects = try places.redirects(preservesMethod: request != nil)
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
        // As in curl, the options for schemes do not restrict the proxy.
        if common.methods != nil { common.proxyMethods = AuthenticationMethod.allCases }
        common.proxy = try proxy.choice(taken, interrupt: interrupt)
        common.tls = try tls.params(taken, storage: login.keep)
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

    /// Returns the maximum number of redirects. curl accepts any number, and -1 for no limit; the broker follows at most
    /// `Limits.redirects`.
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
                throw ExitCode(
                    ExitStatus.writeError, printing: "no file name for -O in \(DisplayURL.text(url)); use -o")
            }
            item.file = inOutputFolder(name)
        }
        if let continueAt = files.continueAt {
            item.resume = Int(continueAt).map { .atByte($0) } ?? .endOfPartial
        }
        item.createsFolders = files.createDirs
        item.removesOnError = files.removeOnError
        item.showsHeader = include || self.head
        item.number = index
        item.refusesRedirects = location && maxRedirs == 0
        item.setsTime = files.remoteTime
        item.savesErrorBodies = failWithBody
        (item.failsOnErrors, item.printsJSON, item.retry) = (fail || failWithBody, json, retry.policy)
        return item
    }

    /// Whether to show progress: not if a response is written to the terminal, where a progress bar would garble it.
    func showsProgress(_ items: [FetchItem]) -> Bool {
        let isMixed = isatty(STDOUT_FILENO) == 1 && items.contains { $0.file == nil }
        return !pace.silent && !pace.noProgressMeter && !json && !isMixed
    }

    /// Sets the content type. If the command has set one, only adds the boundary of a form to it, as in curl.
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
