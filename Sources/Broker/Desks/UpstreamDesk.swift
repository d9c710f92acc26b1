internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Finds the upstreams of servers by the PAC file or the settings of the desktop. Owns their recent results.
final class UpstreamDesk {
    private let port: (any UpstreamPort)?
    private let fetches: FetchRouter
    private let scripts: ScriptLoader
    private let reference: DeskReference<UpstreamDesk>
    private var results = FoundUpstreams()
    private var waiting: [Origin: [FetchID]] = [:]
    /// Counts the changes of the configuration. Results of an earlier one are dropped.
    private var generation = 0
    /// Why the last server has no result; `nil` if it has one.
    private(set) var problem: String?
    /// When the next problem is written to the log. Good and bad results may alternate.
    private var nextLog = Duration.zero
    private static let logInterval = Duration.seconds(60)

    init(_ fetches: FetchRouter, _ port: (any UpstreamPort)?, _ reference: DeskReference<UpstreamDesk>) {
        (self.fetches, self.port, self.reference) = (fetches, port, reference)
        scripts = ScriptLoader(fetches, port, reference)
    }

    private var context: DeskContext { fetches.context }

    /// The configured upstreams with the recent results.
    var rule: ProxyRule {
        var rule = context.options.proxy
        if context.options.upstreamSource != nil { rule.found = results }
        return rule
    }

    /// Forgets all results, because the configuration was loaded again.
    func reconfigure() {
        generation += 1
        results = FoundUpstreams()
        (problem, nextLog) = (nil, .zero)
        scripts.forget()
        for origin in Array(waiting.keys) {
            if context.options.upstreamSource == nil { resume(origin) } else { find(origin) }
        }
        check()
    }

    /// Finds the upstreams of an example, so that a problem is reported before a program needs them.
    func check() {
        guard context.options.upstreamSource != nil, let origin = try? FetchURL("https://example.com/").origin else {
            return
        }
        find(origin)
    }

    /// Finds the upstreams of a server; then the fetch continues.
    func find(_ origin: Origin, for fetch: RunningFetch) {
        waiting[origin, default: []].append(fetch.id)
        fetches.beginWait(of: fetch)
        if waiting[origin]?.count == 1 { find(origin) }
    }

    private func find(_ origin: Origin) {
        let current = generation
        upstreams(of: origin) { [reference] result, isForgeable in
            reference.post { $0.settle(origin, result, isForgeable, current) }
        }
    }

    private func settle(_ origin: Origin, _ result: FoundUpstreams.Result, _ isForgeable: Bool, _ generation: Int) {
        guard generation == self.generation else { return }
        results.record(result, for: origin, isForgeable: isForgeable, now: context.now)
        report(result)
        resume(origin)
        if case .failure(let failure) = result, failure.isBusy { results.forget(origin) }
    }

    private func resume(_ origin: Origin) {
        for id in waiting.removeValue(forKey: origin) ?? [] {
            fetches[id]?.waitTimer = nil
            fetches.report(.foundUpstreams, of: id)
        }
    }

    private func report(_ result: FoundUpstreams.Result) {
        problem = if case .failure(let failure) = result { failure.text } else { nil }
        guard let problem, context.now >= nextLog else { return }
        nextLog = context.now + Self.logInterval
        context.log.error("no proxy can be chosen", metadata: ["reason": "\(problem)"])
    }

    func scriptFetched(_ url: String, _ result: Result<PACScript, UpstreamFailure>, generation: Int) {
        scripts.finish(url, result, generation: generation)
    }

    // MARK: Sources

    private typealias Completion = @Sendable (_ result: FoundUpstreams.Result, _ isForgeable: Bool) -> Void

    private func upstreams(of origin: Origin, completion: @escaping Completion) {
        guard let port, let source = context.options.upstreamSource else {
            return completion(.failure(UpstreamFailure("this broker cannot evaluate PAC files")), false)
        }
        switch source {
        case .pac(let url): evaluate(url, origin, on: port, completion: completion)
        case .desktop:
            port.readDesktop { [reference] result in
                reference.post { $0.use(result, origin, on: port, completion: completion) }
            }
        }
    }

    private func use(
        _ settings: Result<DesktopProxy, UpstreamFailure>, _ origin: Origin, on port: any UpstreamPort,
        completion: @escaping Completion
    ) {
        do throws(UpstreamFailure) {
            let settings = try settings.get()
            guard let url = settings.scriptURL else {
                return completion(.success(try settings.upstreams(for: origin)), false)
            }
            guard !url.isEmpty else {
                throw UpstreamFailure(
                    "the desktop discovers its PAC file in the network (WPAD), which is not supported; set proxy.pac")
            }
            guard ScriptURL.isValid(url) else {
                throw UpstreamFailure(
                    "the desktop's URL of a PAC file does not begin with file:///, http:// or https://, or contains a user; correct autoconfig-url"
                )
            }
            evaluate(url, origin, on: port, completion: completion)
        } catch {
            completion(.failure(error), false)
        }
    }

    private func evaluate(
        _ url: String, _ origin: Origin, on port: any UpstreamPort, completion: @escaping Completion
    ) {
        let isForgeable = ScriptURL.isForgeable(url)
        scripts.load(url) { result in
            switch result {
            case .failure(let failure): completion(.failure(failure), isForgeable)
            case .success(let script):
                var host = origin.host.string
                if host.hasPrefix("[") { host = String(host.dropFirst().dropLast()) }
                port.evaluate(script, url: "\(origin.text)/", host: host) { result in
                    let upstreams = result.flatMap { text in
                        Result { () throws(UpstreamFailure) in try PACScript.upstreams(text) }
                    }
                    completion(upstreams, isForgeable)
                }
            }
        }
    }
}
