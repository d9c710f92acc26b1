internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// A listening socket for fronts that the service manager has passed. The front at its address uses it.
struct InheritedFront {
    let address: FrontAddress
    let descriptor: Int32

    /// - Parameter descriptor: this value takes ownership.
    init(_ descriptor: Int32) throws(SocketFailure) {
        var family: Int32 = 0
        var port: UInt16 = 0
        guard watchword_is_listening_on_loopback(descriptor, &family, &port) != 0 else {
            throw .inheritedDescriptorNotUsable(
                reason: "the socket named \"front\" does not listen on a TCP port of 127.0.0.1 or ::1")
        }
        self.descriptor = descriptor
        address = family == 6 ? .ipv6(port: Int(port)) : .ipv4(port: Int(port))
    }
}
