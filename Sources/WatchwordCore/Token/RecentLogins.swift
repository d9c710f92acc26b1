internal import WatchwordProtocol

/// Recent logins: those that failed, so that programs that waited for the same login do not each start it again, and those that
/// did not help, so that a page that refuses all tokens leads to few logins.
public struct RecentLogins: Sendable {
    /// The logins that did not help at one page.
    private struct Refusals {
        let last: Duration
        let count: Int
        let failure: FetchFailure
        /// Whether the token was refused, and not only its scope: other pages of the table may refuse it, too.
        let concernsTable: Bool
    }

    private static let failureTime = Duration.seconds(5)
    /// The time in which a refused token is not the fault of its age. After a login that did not help, no person is asked for this
    /// time, after the next one twice as long, and so on.
    private static let freshness = Duration.seconds(60)
    private static let mostDoublings = 6
    /// The time after which refusals are forgotten.
    private static let memory = Duration.seconds(2 * 3600)
    private static let mostPages = 256

    private struct Failure {
        let failure: FetchFailure
        let time: Duration
        /// `nil` until the login is forgotten.
        let until: Duration?
        /// Whether a person was asked to log in. Fetches that did not wait for this login begin one of their own.
        let isOfPerson: Bool

        func counts(for query: TokenQuery, now: Duration) -> Bool {
            guard let until else { return true }
            return until > now && (!isOfPerson || query.since < time)
        }
    }

    private var failures: [TokenQuery.Purpose: Failure] = [:]
    /// When a person last logged in.
    private var logins: [TokenQuery.Page: Duration] = [:]
    private var refusals: [TokenQuery.Page: Refusals] = [:]

    public init() {}

    /// Records that a person has logged in.
    public mutating func recordLogin(_ query: TokenQuery, now: Duration) {
        logins = logins.filter { now - $0.value < Self.freshness }
        logins[query.page.table] = now
    }

    /// Records a failure for some seconds. A denied scope is recorded until the login is forgotten.
    /// - Parameter isOfPerson: whether a person was asked to log in.
    public mutating func record(_ failure: FetchFailure, of machine: TokenMachine, isOfPerson: Bool, now: Duration) {
        failures = failures.filter { $0.value.until.map { $0 > now } ?? true }
        failures[machine.query.purpose] = Failure(
            failure: failure, time: now, until: machine.isDenied ? nil : now + Self.failureTime, isOfPerson: isOfPerson)
        // A login for this page without the scope would lead to the same denial.
        if machine.isDenied { refuse(machine.query.page, failure, concernsTable: false, now: now) }
    }

    private mutating func refuse(
        _ page: TokenQuery.Page, _ failure: FetchFailure, concernsTable: Bool, now: Duration
    ) {
        refusals = refusals.filter { now - $0.value.last < Self.memory }
        if refusals.count >= Self.mostPages, let oldest = refusals.min(by: { $0.value.last < $1.value.last })?.key {
            refusals[oldest] = nil
        }
        let count = (refusals[page]?.count ?? 0) + 1
        refusals[page] = Refusals(last: now, count: count, failure: failure, concernsTable: concernsTable)
    }

    /// Forgets what concerns these resources.
    public mutating func forget(where matches: (ResourcePath) -> Bool) {
        func stays(_ resource: String) -> Bool { !(ResourcePath(resource).map(matches) ?? true) }
        failures = failures.filter { stays($0.key.resource) }
        logins = logins.filter { stays($0.key.resource) }
        refusals = refusals.filter { stays($0.key.resource) }
    }

    /// Forgets what concerns only this client.
    public mutating func forget(_ client: ClientTag) {
        failures = failures.filter { $0.key.owner != client }
        logins = logins.filter { $0.key.owner != client }
        refusals = refusals.filter { $0.key.owner != client }
    }

    /// Returns why no search begins now, if that is so.
    public mutating func failure(of query: TokenQuery, now: Duration) -> FetchFailure? {
        if let known = failures[query.purpose], known.counts(for: query, now: now) { return known.failure }
        guard query.needsLogin, query.rule.flow != .registry, let login = freshLogin(of: query, now) else { return nil }
        let failure = FetchFailure(
            .loginFailed,
            "\(query.url.origin.text) refuses the token of the last login; check issuer, scopes and resource, and run "
                + "\"watchword credentials forget --site \(query.url.origin.text)\" to log in again"
        )
        // Each login counts once.
        if refusals[query.page].map({ $0.last < login }) ?? true {
            refuse(query.page, failure, concernsTable: true, now: now)
        }
        return failure
    }

    private func freshLogin(of query: TokenQuery, _ now: Duration) -> Duration? {
        logins[query.page.table].flatMap { now - $0 < Self.freshness ? $0 : nil }
    }

    /// Returns why no person is asked now, if that is so: another login would not help.
    public func refusal(of query: TokenQuery, now: Duration) -> FetchFailure? {
        guard !query.challenge.isInsufficient else { return nil }
        if let page = refusals[query.page],
            now - page.last < Self.freshness * (1 << min(page.count - 1, Self.mostDoublings))
        {
            return page.failure
        }
        guard let login = freshLogin(of: query, now) else { return nil }
        return refusals.first { page, refusals in
            page.table == query.page.table && refusals.concernsTable && refusals.last >= login
        }?.value.failure
    }
}
