internal import WatchwordProtocol

/// The listening sockets passed by the service manager (sd_listen_fds(3)): the main socket and, if present, the
/// restricted socket.
public struct InheritedSockets: Equatable, Sendable {
    public let main: Int32
    public let restricted: Int32?

    public var descriptors: [Int32] { [main] + (restricted.map { [$0] } ?? []) }

    /// The first descriptor that a service manager passes.
    private static let first: Int32 = 3
    /// The name of the restricted socket in `$LISTEN_FDNAMES`. The main socket may have any other name; the default is
    /// the name of its unit.
    private static let restrictedName = "restricted"

    /// Returns `nil` if no sockets were passed to this process. Throws if the variables are not as expected, because a
    /// restricted socket mistaken for the main one would give its clients full access.
    public init?(environment: (String) -> String?, pid: Int32) throws(SocketFailure) {
        guard environment("LISTEN_PID").flatMap(Int32.init) == pid, let text = environment("LISTEN_FDS") else {
            return nil
        }
        guard let count = Int(text), (1...2).contains(count) else {
            throw .inheritedDescriptorNotUsable(
                reason: "expected one or two sockets, but LISTEN_FDS is \"\(text.shortened)\"")
        }
        var names = (environment("LISTEN_FDNAMES") ?? "").split(separator: ":", omittingEmptySubsequences: false)
        if names == [""] { names = [] }
        guard names.count == count || names.isEmpty && count == 1 else {  // guard: inherited-socket-names
            throw .inheritedDescriptorNotUsable(
                reason: "expected \(count) names in LISTEN_FDNAMES, but it has \(names.count)")
        }
        let restricted = names.indices.filter { names[$0] == Self.restrictedName }
        guard restricted.count == count - 1 else {  // guard: inherited-socket-restricted
            throw .inheritedDescriptorNotUsable(
                reason: "expected exactly one socket besides the one named \"\(Self.restrictedName)\"")
        }
        self.restricted = restricted.first.map { Self.first + Int32($0) }
        main = restricted.first == 0 ? Self.first + 1 : Self.first  // guard: inherited-socket-order
    }
}
