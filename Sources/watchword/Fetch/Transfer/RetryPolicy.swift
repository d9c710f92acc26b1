import ArgumentParser
import WatchwordProtocol

/// `--retry` and what belongs to it: whether a fetch that has failed is made again, and when.
struct RetryPolicy: Equatable {
    /// How an attempt has ended.
    enum Outcome: Equatable {
        case failure(ErrorKind?)
        case response(status: Int, retryAfter: Duration?)
    }

    /// How often, after the first time.
    var limit = 0
    /// `nil`: a second, and twice as long each time.
    var delay: Duration?
    /// No attempt starts when more than this has passed since the first one.
    var longest: Duration?
    var afterRefusedConnections = false
    var afterAnything = false

    /// As long as curl's.
    private static let longestDelay = Duration.seconds(600)

    /// Whether `outcome` is one that can be another one the next time.
    func isTransient(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .response(let status, _): [408, 429, 500, 502, 503, 504].contains(status)
        case .failure(.timedOut), .failure(.nameNotResolved): true
        case .failure(.cannotConnect): afterRefusedConnections || afterAnything
        // Somebody has decided these.
        case .failure(.cancelled), .failure(.challengeCancelled), .failure(.challengeTimedOut), .failure(.denied): false
        // These are the same the next time, too.
        case .failure(.badURL), .failure(.invalidParams), .failure(.invalidHeader), .failure(.invalidMethod): false
        case .failure: afterAnything
        }
    }

    /// The pause before the next attempt; `nil` when there is none. `retries` have been made, `elapsed` is the time since the
    /// first attempt began.
    func pause(after outcome: Outcome, retries: Int, elapsed: Duration, isRepeatable: Bool) -> Duration? {
        guard retries < limit, isRepeatable, isTransient(outcome) else { return nil }
        var pause = delay ?? min(.seconds(1 << min(retries, 10)), Self.longestDelay)
        if case .response(_, let wish?) = outcome, wish > .zero { pause = wish }
        if let longest, elapsed + pause > longest { return nil }
        return pause
    }
}

/// The options for it, with curl's meaning.
struct RetryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Fetch again, up to so many times, after a timeout, an unknown host name, or a status of 408, 429, 500, 502, 503 or 504.",
            valueName: "number"))
    var retry = 0

    @Option(
        help: ArgumentHelp(
            "Wait so long before each retry, and not 1, 2, 4 and so on up to 600; what the server asks for (Retry-After) comes first.",
            valueName: "seconds"))
    var retryDelay: Double?

    @Option(
        help: ArgumentHelp("Start no retry later than this after the first attempt.", valueName: "seconds"))
    var retryMaxTime: Double?

    @Flag(help: "Retry when nothing answers at the host and port, too.")
    var retryConnrefused = false

    @Flag(help: "Retry after every failure. What was written to standard output stays written.")
    var retryAllErrors = false

    func validate() throws {
        guard (0...1_000_000).contains(retry) else { throw ValidationError("--retry takes a number from 0 on.") }
        for (seconds, name) in [(retryDelay, "--retry-delay"), (retryMaxTime, "--retry-max-time")] {
            if let seconds, !(0...1_000_000).contains(seconds) { throw ValidationError("\(name) takes seconds.") }
        }
    }

    var policy: RetryPolicy {
        RetryPolicy(
            limit: retry, delay: retryDelay.flatMap(Self.time), longest: retryMaxTime.flatMap(Self.time),
            afterRefusedConnections: retryConnrefused, afterAnything: retryAllErrors)
    }

    /// 0 means what it means for curl: as though it were not given.
    private static func time(_ seconds: Double) -> Duration? { seconds > 0 ? .seconds(seconds) : nil }
}
