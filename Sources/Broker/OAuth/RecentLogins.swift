internal import WatchwordCore
internal import WatchwordProtocol

/// The logins of the last time: those that have failed, so that programs that have waited for the same login do not each start
/// it again, and those that were made, so that a token which is refused at once does not lead to the next login.
struct RecentLogins {
    private static let failureTime = Duration.seconds(5)
    /// The time in which a refused token is not the fault of its age. It doubles with each login that follows within
    /// `memory`, up to 64 minutes: a server that refuses all tokens leads to few logins.
    private static let freshness = Duration.seconds(60)
    private static let memory = Duration.seconds(2 * 3600)
    private static let mostDoublings = 6

    private var failures: [TokenQuery.Purpose: (failure: FetchFailure, until: Duration?)] = [:]
    /// The last login of a person for each resource.
    private var logins: [String: Login] = [:]

    private struct Login {
        let time: Duration
        /// How many logins came before, each within `memory`.
        let predecessors: Int
        /// Whether the resource has refused its token.
        var isRefused = false

        func isFresh(_ now: Duration) -> Bool { now - time < RecentLogins.freshness * (1 << predecessors) }
    }

    mutating func recordLogin(_ purpose: TokenQuery.Purpose, now: Duration) {
        let last = logins[purpose.resource].flatMap { now - $0.time < Self.memory ? $0 : nil }
        logins[purpose.resource] = Login(
            time: now, predecessors: last.map { min($0.predecessors + 1, Self.mostDoublings) } ?? 0)
    }

    /// - Parameter lasts: whether another login would fail in the same way. It is then forgotten with the login only.
    mutating func record(_ failure: FetchFailure, _ purpose: TokenQuery.Purpose, lasts: Bool, now: Duration) {
        failures = failures.filter { $0.value.until.map { $0 > now } ?? true }
        failures[purpose] = (failure, lasts ? nil : now + Self.failureTime)
    }

    mutating func forget(where isMeant: (TokenPlace) -> Bool) {
        failures = failures.filter { purpose, _ in !(TokenPlace(purpose.resource).map(isMeant) ?? true) }
        logins = logins.filter { resource, _ in !(TokenPlace(resource).map(isMeant) ?? true) }
    }

    /// Returns why no search begins now, if that is so.
    mutating func failure(of query: TokenQuery, now: Duration) -> FetchFailure? {
        if let (failure, until) = failures[query.purpose], until.map({ $0 > now }) ?? true { return failure }
        // guard: oauth-fresh-token-refused
        guard query.needsLogin, query.rule.flow != .registry, logins[query.rule.resource]?.isFresh(now) == true else {
            return nil
        }
        logins[query.rule.resource]?.isRefused = true
        return refusal(of: query, now: now)
    }

    /// Returns why no person is asked now, if that is so: another login would lead to the next refused token.
    func refusal(of query: TokenQuery, now: Duration) -> FetchFailure? {
        guard let login = logins[query.rule.resource], login.isRefused, login.isFresh(now) else { return nil }
        return FetchFailure(
            .loginFailed,
            "\(query.url.origin.text) refuses the token of the last login; check issuer, scopes and resource, and forget the "
                + "login to log in again"
        )
    }
}
