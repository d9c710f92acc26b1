internal import WatchwordProtocol

/// Decides which connections may use a token that was issued on another one.
struct TokenScope {
    let connection: ConnectionID
    let peer: PeerIdentity
    let program: ClientProgram

    init(_ connection: ClientConnection) {
        (self.connection, peer, program) = (connection.id, connection.peer, connection.program)
    }

    /// Whether `other` has the same user and the same kind of socket. Tokens of the main socket are not valid on the
    /// restricted socket, and vice versa.
    func isSameEntrance(as other: ClientConnection) -> Bool {
        other.peer.uid == peer.uid && other.peer.socketKind == peer.socketKind
    }

    /// Whether `other` belongs to the same program, according to the subjects determined when both connected.
    func isOfProgram(of other: ClientConnection) -> Bool {
        other.id == connection || other.peer.subject.isSame(as: peer.subject)
    }

    /// Whether `other` may attach a body. If either program is sandboxed, both must be the same program.
    func admits(_ other: ClientConnection) -> Bool {
        guard isSameEntrance(as: other) else { return false }
        guard other.peer.subject.isSandboxed || peer.subject.isSandboxed else { return true }
        return isOfProgram(of: other) || other.program === program
    }
}
