internal import WatchwordCore
internal import WatchwordProtocol

/// The netrc file, on behalf of fetches.
extension Router {
    func readNetrc(_ query: NetrcQuery, for fetch: RunningFetch) {
        lastLookUp += 1
        let (id, number) = (fetch.id, lastLookUp)
        beginLookUp(number, of: fetch)
        guard let netrc, let file = options.netrcFile else { return netrcRead([], id, number) }
        netrc.logins(for: query, in: file, completion: way.callback { $0.netrcRead($1, id, number) })
    }

    private func netrcRead(_ logins: [Netrc.Login], _ id: FetchID, _ number: Int) {
        guard let fetch = fetches[id], case .lookingUp(number, _) = fetch.state else { return }
        perform(table.foundInNetrc(logins, for: id, environment))
    }
}
