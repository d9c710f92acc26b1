import ArgumentParser
import Glibc
import WatchwordProtocol

/// Whether and when to retry a failed fetch (`--retry` and related options).
struct RetryPolicy: Equatable {
    /// How an attempt ended.
    enum Outcome: Equatable {
        case failure(ErrorKind?)
        case response(status: Int, retryAfter: Duration?)
    }

    /// The maximum number of retries.
    var limit = 0
    /// The pause before each retry; `nil` for one second, doubled each time.
    var delay: Duration?
    /// The maximum time from the first attempt to the start of a retry.
    var longest: Duration?
    var afterRefusedConnections = false
    var afterAnything = false

    /// The longest default pause, as in curl.
    private static let longestDelay = Duration.seconds(600)

    /// Whether a retry may have a different outcome.
    func isTransient(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .response(let status, _): [408, 429, 500, 502, 503, 504].contains(status)
        case .failure(.timedOut), .failure(.nameNotResolved): true
        case .failure(.cannotConnect): afterRefusedConnections || afterAnything
        // These are decisions of the user or of the broker.
        case .failure(.cancelled), .failure(.challengeCancelled), .failure(.challengeTimedOut), .failure(.denied): false
        // These are errors of the request, which a retry would repeat.
        case .failure(.badURL), .failure(.invalidParams), .failure(.invalidHeader), .failure(.invalidMethod): false
        case .failure: afterAnything
        }
    }

    /// Returns the pause before a retry; `nil` if the attempt is not repeated.
    /// - Parameters:
    ///   - retries: the number of previous retries.
    ///   - elapsed: the time since the first attempt began.
    func pause(after outcome: Outcome, retries: Int, elapsed: Duration, isRepeatable: Bool) -> Duration? {
        guard retries < limit, isRepeatable, isTransient(outcome) else { return nil }
        var pause = delay ?? min(.seconds(1 << min(retries, 10)), Self.longestDelay)
        if case .response(_, let wish?) = outcome, wish > .zero { pause = wish }
        if let longest, elapsed + pause > longest { return nil }
        return pause
    }
}

/// The retry options, with curl's meaning.
struct RetryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Retry up to this many times after a timeout, an unknown host name, or status 408, 429, 500, 502, 503 or 504.",
            valueName: "number"))
    var retry = 0

    @Option(
        help: ArgumentHelp(
            "Wait this long before each retry instead of 1, 2, 4 and so on up to 600; a Retry-After header field takes precedence.",
            valueName: "seconds"))
    var retryDelay: Double?

    @Option(
        help: ArgumentHelp("The maximum time from the first attempt to a retry.", valueName: "seconds"))
    var retryMaxTime: Double?

    @Flag(help: "Also retry if the connection cannot be established.")
    var retryConnrefused = false

    @Flag(help: "Also retry after other failures. Bytes already written to standard output remain there.")
    var retryAllErrors = false

    func validate() throws {
        guard (0...1_000_000).contains(retry) else { throw ValidationError("--retry takes 0 to 1000000") }
        for (seconds, name) in [(retryDelay, "--retry-delay"), (retryMaxTime, "--retry-max-time")] {
            if let seconds, !(0...1_000_000).contains(seconds) {
                throw ValidationError("\(name) takes 0 to 1000000 seconds")
            }
        }
    }

    var policy: RetryPolicy {
        RetryPolicy(
            limit: retry, delay: retryDelay.flatMap(Self.time), longest: retryMaxTime.flatMap(Self.time),
            afterRefusedConnections: retryConnrefused, afterAnything: retryAllErrors)
    }

    /// Returns `nil` for 0, which means no value, as in curl.
    private static func time(_ seconds: Double) -> Duration? { seconds > 0 ? .seconds(seconds) : nil }
}

/// Counts the retries of one transfer for its retry policy.
struct RetryCount {
    private let policy: RetryPolicy
    private let isRepeatable: Bool
    private let start = ContinuousClock.now
    private var hasStarted = false
    private(set) var count = 0

    init(_ item: FetchItem) { (policy, isRepeatable) = (item.retry, item.content?.isRepeatable ?? true) }

    /// Records an attempt. Returns whether there was an earlier one.
    mutating func recordAttempt() -> Bool {
        defer { hasStarted = true }
        return hasStarted
    }

    mutating func recordRetry() { count += 1 }

    /// Returns the pause before a retry; `nil` if the attempt is not repeated.
    func pause(after outcome: RetryPolicy.Outcome) -> Duration? {
        policy.pause(after: outcome, retries: count, elapsed: .now - start, isRepeatable: isRepeatable)
    }

    func pause(after head: ReportedHead?) -> Duration? {
        let wish = HTTPDate.retryAfter(head?.headers.firstValue(of: "Retry-After"), now: time(nil))
        return pause(after: .response(status: head?.status ?? 0, retryAfter: wish))
    }
}

extension HTTPDate {
    /// 365 days, in seconds.
    private static let longestDelay = 86_400 * 365

    /// Returns the delay that `Retry-After` requests, in seconds or as a date (RFC 9110 section 10.2.3), but at most 365 days.
    static func retryAfter(_ text: String?, now: Int) -> Duration? {
        guard let text else { return nil }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return text.isEmpty ? nil : .seconds(min(Int(text) ?? longestDelay, longestDelay))
        }
        return seconds(text).map { .seconds(min(max(0, $0 - now), longestDelay)) }
    }
}
