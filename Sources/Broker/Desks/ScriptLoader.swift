internal import WatchwordCore
internal import WatchwordProtocol

/// Loads the PAC file: from a file for each use, or by HTTP from time to time.
final class ScriptLoader {
    typealias Completion = @Sendable (Result<PACScript, UpstreamFailure>) -> Void

    /// The time after which a fetched file is fetched again.
    private static let lifetime = Duration.seconds(900)
    /// The time after which a failed fetch is repeated.
    private static let failureLifetime = Duration.seconds(5)
    private static let timeout = Duration.seconds(10)

    private let fetches: FetchRouter
    private let port: (any UpstreamPort)?
    private let reference: DeskReference<UpstreamDesk>
    private var fetched: (url: String, result: Result<PACScript, UpstreamFailure>, expiry: Duration)?
    /// The calls that wait for a file, by its URL.
    private var waiting: [String: [Completion]] = [:]
    /// Counts the calls of `forget`. A file that was requested before is dropped.
    private var generation = 0

    init(_ fetches: FetchRouter, _ port: (any UpstreamPort)?, _ reference: DeskReference<UpstreamDesk>) {
        (self.fetches, self.port, self.reference) = (fetches, port, reference)
    }

    /// Forgets the file, and fails the calls that wait for one.
    func forget() {
        let interrupted = waiting.values.joined()
        (fetched, waiting) = (nil, [:])
        generation += 1
        for completion in interrupted { completion(.failure(UpstreamFailure("the configuration was loaded again"))) }
    }

    /// - Parameter completion: may be called on any thread.
    func load(_ url: String, completion: @escaping Completion) {
        guard let port else { return completion(.failure(UpstreamFailure("PAC files are not supported"))) }
        let file = "file://"
        if url.hasPrefix("\(file)/") {
            return port.readScript(String(url.dropFirst(file.count)), completion: completion)
        }
        if let fetched, fetched.url == url, fetches.context.now < fetched.expiry { return completion(fetched.result) }
        waiting[url, default: []].append(completion)
        if waiting[url]?.count == 1 { fetch(url, port) }
    }

    private func fetch(_ url: String, _ port: any UpstreamPort) {
        let parsed: FetchURL
        let hosts = fetches.context.rules.hosts
        do throws(FetchFailure) {
            parsed = try FetchURL(url)
            try hosts.check(script: parsed.origin)
        } catch {
            return finish(
                url, .failure(UpstreamFailure("cannot fetch the PAC file \(ScriptURL.display(url)): \(error.text)")))
        }
        var options = TransferOptions(maxBodyBytes: PACScript.largestSize)
        options.delivery = .whole
        var request = TransferRequest(
            url: parsed, method: "GET", timeout: Self.timeout, Indirect(wrappedValue: options))
        request.deniedAddresses = hosts.addresses
        let current = generation
        _ = fetches.ports.transfers.start(Boxed(request), ResponseQuotas()) { [reference] outcome in
            let completion: Completion = { result in
                reference.post { desk in desk.scriptFetched(url, result, generation: current) }
            }
            switch Self.script(outcome, url) {
            // The answer may be something else, such as the page of a captive portal.
            case .success(let script): port.check(script, completion: completion)
            case .failure(let failure): completion(.failure(failure))
            }
        }
    }

    private static func script(
        _ outcome: TransferPort.Outcome, _ url: String
    ) -> Result<PACScript, UpstreamFailure> {
        Result { () throws(UpstreamFailure) in
            let shown = ScriptURL.display(url)
            do throws(TransferFailure) {
                let response = try outcome.get()
                guard response.status == 200 else {
                    throw TransferFailure(.malformedResponse, "the server answered with status \(response.status)")
                }
                return response.body
            } catch {
                throw UpstreamFailure("cannot fetch the PAC file \(shown): \(error.detail)")
            }
        }.flatMap { bytes in Result { () throws(UpstreamFailure) in try PACScript(bytes) } }
    }

    /// Reports the result of a fetch.
    func finish(_ url: String, _ result: Result<PACScript, UpstreamFailure>, generation: Int) {
        guard generation == self.generation else { return }
        finish(url, result)
    }

    private func finish(_ url: String, _ result: Result<PACScript, UpstreamFailure>) {
        let now = fetches.context.now
        var kept = result
        var lifetime = Self.lifetime
        if case .failure(let failure) = result {
            lifetime = failure.isBusy ? .zero : Self.failureLifetime
            // The previous file remains in use while there is no other.
            if let fetched, fetched.url == url, case .success = fetched.result { kept = fetched.result }
        }
        fetched = (url, kept, now + lifetime)
        for completion in waiting.removeValue(forKey: url) ?? [] { completion(kept) }
    }
}
