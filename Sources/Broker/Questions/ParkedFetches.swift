internal import WatchwordCore
internal import WatchwordProtocol

/// The fetches between their two halves, by the token that names the second one.
struct ParkedFetches {
    private var fetches: [String: ParkedFetch] = [:]

    subscript(token: String) -> ParkedFetch? { fetches[token] }

    var all: Dictionary<String, ParkedFetch>.Values { fetches.values }

    func count(at connection: ConnectionID) -> Int { all.count { $0.scope.connection == connection } }

    /// The program of a process that has left a fetch here.
    func program(of pid: Int32) -> ClientProgram? { all.first { $0.scope.peer.pid == pid }?.scope.program }

    func checkRoom(for connection: ClientConnection) throws(FetchFailure) {
        guard fetches.count < Limits.parkedFetches else {
            throw FetchFailure(
                .busy, "More than \(Limits.parkedFetches) fetches wait for an answer. Answer some first.")
        }
        guard all.count(where: { $0.scope.peer.pid == connection.peer.pid }) < Limits.parkedFetchesOfProgram else {
            let text = "\(Limits.parkedFetchesOfProgram) fetches of this program wait for an answer. Answer some first."
            throw FetchFailure(.busy, text)
        }
    }

    /// Returns the token.
    mutating func add(_ params: AuthChallengeParams, _ scope: TokenScope) -> String {
        let token = RandomText.make128Bits()
        fetches[token] = ParkedFetch(params: params, scope: scope)
        return token
    }

    mutating func remove(_ token: String) -> ParkedFetch? { fetches.removeValue(forKey: token) }
}

/// A fetch between its two halves.
struct ParkedFetch {
    let params: AuthChallengeParams
    /// Where its first half was.
    let scope: TokenScope

    /// Whether this is the peer that may come back: any program of the user that has the token, but for those that are kept
    /// apart.
    func isFor(_ other: ClientConnection) -> Bool {
        guard scope.isSameEntrance(as: other) else { return false }
        guard other.isConfined || scope.peer.subject.isSandboxed else { return true }
        return scope.isOfProgram(of: other)
    }
}
