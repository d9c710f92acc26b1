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
    private let loop: EventLoop
    private weak var server: FrontServer?
    /// The listening sockets: at `address`, and perhaps at the same port of the other loopback address.
    private let sockets: [Int32]
    private var file: ListeningSocket?
    private let descriptors = Descriptors()
    private lazy var resuming = LoopTimer(on: loop) { [unowned self] in watch() }

    /// - Parameter inherited: a socket that listens at the address already; this object takes ownership.
    init(
        _ front: FrontID, at address: FrontAddress, _ inherited: Int32?, isLocalhost: Bool, ancestor: Int32?,
        of server: FrontServer
    ) throws(FrontFailure) {
        (self.front, self.ancestor, self.server, loop) = (front, ancestor, server, server.loop)
        if case .socket(let path) = address {
            do throws(SocketFailure) {
                let socket = try ListeningSocket(
                    at: SocketLocation(explicit: path, environment: { _ in nil }, uid: getuid()))
                (sockets, self.address) = ([socket.descriptor], address)
                file = consume socket
            } catch {
                throw FrontFailure("cannot listen on \(address.text): \(error)")
            }
        } else {
            (sockets, self.address) = try Self.listen(at: address, inherited, isLocalhost: isLocalhost)
        }
        watch()
    }

    private static func listen(
        at address: FrontAddress, _ inherited: Int32?, isLocalhost: Bool
    ) throws(FrontFailure) -> ([Int32], FrontAddress) {
        // A port that the kernel has chosen may be in use at the other address.
        var tries = address.port == 0 ? 64 : 1
        while true {
            let (own, address) =
                if let inherited { (inherited, address) } else { try listen(at: address, instead: address) }
            guard isLocalhost, let other = address.other else { return ([own], address) }
            do throws(FrontFailure) {
                return ([own, try listen(at: other, instead: address).0], address)
            } catch {
                // Without IPv6, no program can listen there.
                if [EADDRNOTAVAIL, EAFNOSUPPORT].contains(error.code) { return ([own], address) }
                Glibc.close(own)
                tries -= 1
                guard tries > 0, error.code == EADDRINUSE else { throw error }
            }
        }
    }

    /// - Parameter front: the address of the front, for the error.
    private static func listen(
        at address: FrontAddress, instead front: FrontAddress
    ) throws(FrontFailure) -> (Int32, FrontAddress) {
        var bound: UInt16 = 0
        let family: Int32 = if case .ipv6 = address { 6 } else { 4 }
        let descriptor = watchword_listen_on_loopback(family, UInt16(address.port ?? 0), &bound)
        let code = errno
        guard descriptor >= 0 else {
            let place = address == front ? "this port" : "the same port of \(address.text), to which localhost may lead"
            let advice =
                code == EADDRINUSE
                ? "; another program uses \(place), and gets what programs send there: end it, or choose another port"
                : ""
            throw FrontFailure(
                "cannot listen on \(front.text): \(String(cString: strerror(code)))\(advice)", code: code)
        }
        return (descriptor, family == 6 ? .ipv6(port: Int(bound)) : .ipv4(port: Int(bound)))
    }

    private func watch() {
        for socket in sockets where !loop.watch(socket, .readable, self) { resuming.set(in: Self.pause) }
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        guard let server else { return close() }
        for _ in 0..<Self.accepted {
            guard descriptors.hasRoom, server.hasRoomForSearch else { return rest() }
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
        for socket in sockets { loop.forget(socket) }
        resuming.set(in: Self.pause)
    }

    func close() {
        resuming.cancel()
        for socket in sockets {
            loop.forget(socket)
            Glibc.close(socket)
        }
        file?.removeFile()
    }
}

extension FrontAddress {
    /// The same port of the other loopback address; `nil` for a Unix socket.
    fileprivate var other: FrontAddress? {
        switch self {
        case .ipv4(let port): .ipv6(port: port)
        case .ipv6(let port): .ipv4(port: port)
        case .socket: nil
        }
    }
}
