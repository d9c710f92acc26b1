internal import WatchwordCore
internal import WatchwordProtocol

/// A search for a token that is under way, and the fetches that wait for it. Used on the broker's executor only.
final class RunningTokenSearch {
    let number: Int
    let purpose: TokenQuery.Purpose
    var machine: TokenMachine
    /// The fetches, and whether each may be asked for a login.
    var waiting: [FetchID: Bool] = [:]
    /// The others that wait, without a person.
    var completions: [(TokenOutcome) -> Void] = []
    /// Whether a person was asked to log in.
    var hasAsked = false
    var timer: DeadlineTimer?
    /// The front at which the browser arrives.
    var front: FrontID?
    /// The requests of the browser that are not answered yet.
    var visits: [Int: FrontAnswer] = [:]
    var lastVisit = 0
    /// The client for which the broker logs in to a token service.
    var client: ConnectionID?

    init(_ query: TokenQuery, number: Int) {
        self.number = number
        purpose = query.purpose
        machine = TokenMachine(query)
    }
}

/// The failures of the last seconds, so that programs that have waited for the same login do not each start it again.
struct RecentTokenFailures {
    private static let time = Duration.seconds(5)

    private var failures: [TokenQuery.Purpose: (failure: FetchFailure, until: Duration)] = [:]

    mutating func record(_ failure: FetchFailure, _ purpose: TokenQuery.Purpose, now: Duration) {
        failures = failures.filter { $0.value.until > now }
        failures[purpose] = (failure, now + Self.time)
    }

    mutating func forget(_ purpose: TokenQuery.Purpose) { failures[purpose] = nil }

    func failure(_ purpose: TokenQuery.Purpose, now: Duration) -> FetchFailure? {
        failures[purpose].flatMap { $0.until > now ? $0.failure : nil }
    }
}
