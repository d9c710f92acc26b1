internal import Broker
internal import EventLoop
internal import WatchwordCore

/// The service's reference to a connection. Each call checks at run time that it is made on the loop.
struct FrontSocketLink: FrontLink {
    let socket: LoopBound<FrontConnection>

    func send(_ bytes: [UInt8]) { socket.value.send(bytes) }

    var waitingBytes: Int { socket.value.waitingBytes }

    func close() { socket.value.close() }

    func abandon() { socket.value.abandon() }

    /// Does nothing: a front has no JSON-RPC messages after which its socket could be detached.
    func detach(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {}

    func endResponse(keepsAlive: Bool) { socket.value.endResponse(keepsAlive: keepsAlive) }

    func takeBody() -> Int32? { socket.value.takeBody() }

    func openTunnel(to origin: Int32) { socket.value.openTunnel(to: origin) }

    func switchProtocol() { socket.value.switchProtocol() }
}
