internal import WatchwordCore
internal import WatchwordProtocol

/// The parked fetches, by resume token.
struct ParkedFetches {
    private var fetches: [String: ParkedFetch] = [:]

    subscript(token: String) -> ParkedFetch? { fetches[token] }

    var all: Dictionary<String, ParkedFetch>.Values { fetches.values }

    func count(at connection: ConnectionID) -> Int { all.count { $0.scope.connection == connection } }

    /// Returns the program of a process that has a parked fetch.
    func program(of pid: Int32) -> ClientProgram? { all.first { $0.scope.peer.pid == pid }?.scope.program }

    func checkRoom(for connection: ClientConnection) throws(FetchFailure) {
        guard fetches.count < Limits.parkedFetches else {
            throw FetchFailure(
                .busy, "too many parked fetches (limit \(Limits.parkedFetches)); answer one first")
        }
        guard all.count(where: { $0.scope.peer.pid == connection.peer.pid }) < Limits.parkedFetchesOfProgram else {
            let text =
                "too many parked fetches of this program (limit \(Limits.parkedFetchesOfProgram)); answer one first"
            throw FetchFailure(.busy, text)
        }
    }

    /// Parks a fetch, and returns its resume token.
    mutating func add(_ params: AuthChallengeParams, _ scope: TokenScope) -> String {
        let token = RandomText.make128Bits()
        fetches[token] = ParkedFetch(params: params, scope: scope)
        return token
    }

    mutating func remove(_ token: String) -> ParkedFetch? { fetches.removeValue(forKey: token) }
}

/// A fetch whose challenge was delivered as the result of the call, until the fetch is resumed.
struct ParkedFetch {
    let params: AuthChallengeParams
    /// The scope of the client that started the fetch.
    let scope: TokenScope

    /// Whether `other` may resume the fetch: any program of the same user on the same kind of socket. Confined programs
    /// may resume only their own fetches, and only the same program may resume a fetch of a sandboxed one.
    func isFor(_ other: ClientConnection) -> Bool {
        guard scope.isSameEntrance(as: other) else { return false }
        guard other.isConfined || scope.peer.subject.isSandboxed else { return true }
        return scope.isOfProgram(of: other)
    }
}
