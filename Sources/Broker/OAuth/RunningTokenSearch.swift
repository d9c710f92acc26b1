internal import WatchwordCore
internal import WatchwordProtocol

/// A search for a token that is under way, and the fetches that wait for it. Used on the broker's executor only.
final class RunningTokenSearch {
    let number: Int
    let purpose: TokenQuery.Purpose
    var machine: TokenMachine
    var waiting = Waiting()
    /// Set if the search has ended for all that waited, and only the reply to a renewal is to be stored.
    var detached: Detachment?
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

extension RunningTokenSearch {
    /// The place of the login that a detached renewal brings.
    enum Detachment {
        case sessionAndKeyring
        case keyring
    }

    /// Fetches and functions that wait for the outcome, which is reported once.
    struct Waiting {
        /// The fetches, and whether each may be asked for a login.
        var fetches: [FetchID: Bool] = [:]
        /// The others, without a person.
        var completions: [(TokenOutcome) -> Void] = []

        mutating func takeCompletions() -> [(TokenOutcome) -> Void] {
            defer { completions = [] }
            return completions
        }
    }

    func takeWaiting() -> Waiting {
        defer { waiting = Waiting() }
        return waiting
    }

    /// The resource in the log.
    var resource: String { DisplayURL.text(purpose.resource) }
}

/// The searches that are under way.
struct RunningTokenSearches {
    private var searches: [Int: RunningTokenSearch] = [:]
    private var lastNumber = 0

    var all: [RunningTokenSearch] { searches.values.sorted { $0.number < $1.number } }

    subscript(number: Int) -> RunningTokenSearch? { searches[number] }

    subscript(purpose: TokenQuery.Purpose) -> RunningTokenSearch? {
        searches.values.first { $0.purpose == purpose && $0.detached == nil }
    }

    mutating func begin(_ query: TokenQuery) -> RunningTokenSearch {
        lastNumber += 1
        let search = RunningTokenSearch(query, number: lastNumber)
        searches[lastNumber] = search
        return search
    }

    /// - Returns: `false` if the search has ended before.
    mutating func end(_ search: RunningTokenSearch) -> Bool { searches.removeValue(forKey: search.number) != nil }
}
