internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// The listening sockets passed by the service manager (sd_listen_fds(3)): the main socket and, if present, the
/// restricted socket and that of the proxy for unchanged programs.
public struct InheritedSockets: Equatable, Sendable {
    public let main: Int32
    public let restricted: Int32?
    /// The TCP socket of `front.proxy`.
    public let front: Int32?

    public var descriptors: [Int32] { [main] + [restricted, front].compactMap { $0 } }

    /// The first descriptor that a service manager passes.
    private static let first: Int32 = 3
    /// The names of the other sockets in `$LISTEN_FDNAMES`. The main socket may have any other name; the default is the
    /// name of its unit.
    private static let restrictedName = "restricted"
    private static let frontName = "front"

    /// Returns `nil` if no sockets were passed to this process. Throws if the variables are not as expected, because a
    /// restricted socket mistaken for the main one would give its clients full access.
    public init?(environment: (String) -> String?, pid: Int32) throws(SocketFailure) {
        guard environment("LISTEN_PID").flatMap(Int32.init) == pid, let text = environment("LISTEN_FDS") else {
            return nil
        }
        guard let count = Int(text), (1...3).contains(count) else {
            throw .inheritedDescriptorNotUsable(
                reason: "expected one to three sockets, but LISTEN_FDS is \"\(text.shortened)\"")
        }
        var names = (environment("LISTEN_FDNAMES") ?? "").split(separator: ":", omittingEmptySubsequences: false)
        if names == [""] { names = [] }
        guard names.count == count || names.isEmpty && count == 1 else {
            throw .inheritedDescriptorNotUsable(
                reason: "expected \(count) names in LISTEN_FDNAMES, but it has \(names.count)")
        }
        let others = [Self.restrictedName, Self.frontName]
        let mains = (0..<count).filter { names.isEmpty || !others.contains(String(names[$0])) }
        // guard: inherited-socket-restricted
        guard mains.count == 1, others.allSatisfy({ other in names.count { $0 == other } <= 1 }) else {
            throw .inheritedDescriptorNotUsable(
                reason: "expected exactly one socket besides those named \"restricted\" and \"front\"")
        }
        func descriptor(named name: String) -> Int32? {
            names.firstIndex { $0 == name }.map { Self.first + Int32($0) }
        }
        restricted = descriptor(named: Self.restrictedName)
        front = descriptor(named: Self.frontName)
        main = Self.first + Int32(mains[0])
    }
}

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
