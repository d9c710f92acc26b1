internal import WatchwordProtocol

/// Which connections may use a token that was issued on another one.
struct TokenScope {
    let connection: ConnectionID
    let peer: PeerIdentity
    let program: ClientProgram

    init(_ connection: ClientConnection) {
        (self.connection, peer, program) = (connection.id, connection.peer, connection.program)
    }

    /// The same user, by the same socket: what was begun on the main one is out of reach from the restricted one, and the other
    /// way round.
    func isSameEntrance(as other: ClientConnection) -> Bool {
        other.peer.uid == peer.uid && other.peer.entrance == peer.entrance
    }

    /// As far as is known; the process itself may be another one by now.
    func isOfProgram(of other: ClientConnection) -> Bool {
        other.id == connection || other.peer.subject.isSame(as: peer.subject)
    }

    /// Whether `other` may attach a body: sandboxed programs only their own.
    func admits(_ other: ClientConnection) -> Bool {
        guard isSameEntrance(as: other) else { return false }
        guard other.peer.subject.isSandboxed || peer.subject.isSandboxed else { return true }
        return isOfProgram(of: other) || other.program === program
    }
}
