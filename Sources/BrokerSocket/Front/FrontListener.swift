internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import WatchwordProtocol

/// Accepts the connections of one front. Pauses while descriptors are short. Used on its loop only.
final class FrontListener: ReadinessHandler {
    /// The pause after a failure of accept(2). Programs wait in the kernel's queue meanwhile.
    private static let pause = Duration.milliseconds(100)
    /// The maximum number of connections accepted in one turn of the loop.
    private static let accepted = 16

    let front: FrontID
    /// The address with the port that the kernel has chosen.
    let address: FrontAddress
    /// See `FrontPort.open`.
    let ancestor: Int32?
    private unowned let server: FrontServer
    private let descriptor: Int32
    private var socket: ListeningSocket?
    private let descriptors = Descriptors()
    private lazy var resuming = LoopTimer(on: server.loop) { [unowned self] in watch() }

    /// - Parameter inherited: a socket that listens at the address already; this object takes ownership.
    init(
        _ front: FrontID, at address: FrontAddress, _ inherited: Int32?, ancestor: Int32?, of server: FrontServer
    ) throws(FrontFailure) {
        (self.front, self.ancestor, self.server) = (front, ancestor, server)
        if let inherited {
            (descriptor, self.address) = (inherited, address)
            watch()
            return
        }
        switch address {
        case .ipv4(let port): (descriptor, self.address) = try Self.listen(4, port) { .ipv4(port: $0) }
        case .ipv6(let port): (descriptor, self.address) = try Self.listen(6, port) { .ipv6(port: $0) }
        case .socket(let path):
            do throws(SocketFailure) {
                let socket = try ListeningSocket(
                    at: SocketLocation(explicit: path, environment: { _ in nil }, uid: getuid()))
                (descriptor, self.address) = (socket.descriptor, address)
                self.socket = consume socket
            } catch {
                throw FrontFailure("cannot listen on \(address.text): \(error)")
            }
        }
        watch()
    }

    private static func listen(
        _ family: Int32, _ port: Int, _ address: (Int) -> FrontAddress
    ) throws(FrontFailure) -> (Int32, FrontAddress) {
        var bound: UInt16 = 0
        let descriptor = watchword_listen_on_loopback(family, UInt16(port), &bound)
        guard descriptor >= 0 else {
            let advice = errno == EADDRINUSE ? "; another program uses this port, choose another one" : ""
            throw FrontFailure("cannot listen on \(address(port).text): \(String(cString: strerror(errno)))\(advice)")
        }
        return (descriptor, address(Int(bound)))
    }

    private func watch() {
        if !server.loop.watch(descriptor, .readable, self) { resuming.set(in: Self.pause) }
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        for _ in 0..<Self.accepted {
            guard descriptors.hasRoom else { return rest() }
            let accepted = watchword_accept(descriptor)
            guard accepted >= 0 else {
                if ![EAGAIN, EINTR, ECONNABORTED].contains(errno) { rest() }
                return
            }
            server.admit(accepted, at: self)
        }
    }

    /// Stops watching for a while; the socket stays readable, so the loop would spin.
    private func rest() {
        server.loop.forget(descriptor)
        resuming.set(in: Self.pause)
    }

    func close() {
        resuming.cancel()
        server.loop.forget(descriptor)
        Glibc.close(descriptor)
        socket?.removeFile()
    }
}
