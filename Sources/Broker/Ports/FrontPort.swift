public import WatchwordCore
public import WatchwordProtocol

/// Identifies a front; not reused while the broker runs.
public struct FrontID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// The interface to the listening sockets of fronts. Used on the broker's executor only.
public protocol FrontPort: Sendable {
    /// The TCP ports at which fronts listen at any time.
    var ownPorts: OwnPorts { get }

    /// Starts to accept connections at `address`.
    /// - Parameter isLocalhost: whether programs may use the name `localhost`, so that the port of both loopback addresses
    ///   must be the front's: another user could answer at the other one.
    /// - Parameter ancestor: the process of whose descendants it is reported that they are; `nil` for none.
    /// - Returns: the address with the port that the kernel has chosen.
    /// - Throws: `FrontFailure` if the address cannot be used.
    func open(
        _ front: FrontID, at address: FrontAddress, isLocalhost: Bool, ancestor: Int32?
    ) throws(FrontFailure) -> FrontAddress

    /// Stops accepting connections, and closes those of this front.
    func close(_ front: FrontID)
}

/// The reason why a front cannot listen: a message with the address, for people.
public struct FrontFailure: Error, Sendable, Equatable {
    public let text: String
    /// The error of the system; 0 if there is none.
    public let code: Int32

    public init(_ text: String, code: Int32 = 0) { (self.text, self.code) = (text, code) }
}

/// The program at the other end of a connection to a front.
public struct FrontPeer: Sendable {
    public var identity: PeerIdentity
    /// Whether it is the process that opened the front, or a descendant of it.
    public var isDescendant: Bool

    public init(_ identity: PeerIdentity, isDescendant: Bool) {
        (self.identity, self.isDescendant) = (identity, isDescendant)
    }
}

/// A connection of a program to a front, on which one request is answered at a time. Used on the broker's executor only.
/// No method blocks or fails: a link that is broken drops the bytes, and the service receives `frontConnectionClosed`.
public protocol FrontLink: ClientLink {
    /// Ends the response. Then the next request is read, or the connection is closed.
    func endResponse(keepsAlive: Bool)

    /// Returns a descriptor from which the request's body can be read, if it is streamed. The caller takes ownership.
    func takeBody() -> Int32?

    /// Relays bytes between the program and `origin` until both have ended.
    /// - Parameter origin: a connected socket; the link takes ownership.
    func openTunnel(to origin: Int32)

    /// Passes on all further input through the body's descriptor: after status 101 the program speaks another protocol.
    func switchProtocol()
}

/// Receives the requests that programs send to fronts. All calls are made on the broker's executor.
/// `frontConnectionClosed` is always the last call for its connection.
public protocol FrontService: Sendable {
    /// - Returns: `nil` if the connection is not admitted.
    func frontConnectionOpened(_ link: any FrontLink, _ peer: FrontPeer, at front: FrontID) -> ConnectionID?

    /// Reports the next request. `endResponse` of the link ends it.
    func requested(_ request: FrontRequest, _ body: FrontBody, on connection: ConnectionID)

    /// Reports that the rest of the request's body is malformed, so that the request cannot be answered.
    func requestBroken(_ refusal: FrontRefusal, on connection: ConnectionID)

    /// Reports that the program has read most of the response so far.
    func drained(_ connection: ConnectionID)

    func frontConnectionClosed(_ connection: ConnectionID)
}
