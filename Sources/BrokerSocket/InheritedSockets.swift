internal import WatchwordProtocol

/// The listening sockets that the service manager has handed over (sd_listen_fds(3)): the main one, and the restricted one if it
/// is there.
public struct InheritedSockets: Equatable, Sendable {
    public let main: Int32
    public let restricted: Int32?

    public var descriptors: [Int32] { [main] + (restricted.map { [$0] } ?? []) }

    /// The first descriptor that a service manager hands over.
    private static let first: Int32 = 3
    /// The name of the restricted socket among `$LISTEN_FDNAMES`. The main one may have any other: a manager gives it the name of
    /// its unit where nothing else was said.
    private static let restrictedName = "restricted"

    /// `nil` where this process has not been handed any. What is not understood is refused: a restricted socket that was taken for
    /// the main one would be open to those whom it is to keep out.
    public init?(environment: (String) -> String?, pid: Int32) throws(SocketFailure) {
        guard environment("LISTEN_PID").flatMap(Int32.init) == pid, let text = environment("LISTEN_FDS") else {
            return nil
        }
        guard let count = Int(text), (1...2).contains(count) else {
            throw .inheritedDescriptorNotUsable(
                reason: "one socket is expected, or two, and LISTEN_FDS is \"\(text.shortened)\"")
        }
        var names = (environment("LISTEN_FDNAMES") ?? "").split(separator: ":", omittingEmptySubsequences: false)
        if names == [""] { names = [] }
        guard names.count == count || names.isEmpty && count == 1 else {
            throw .inheritedDescriptorNotUsable(
                reason: "there are \(count) sockets, and LISTEN_FDNAMES has \(names.count) names")
        }
        let restricted = names.indices.filter { names[$0] == Self.restrictedName }
        guard restricted.count == count - 1 else {
            throw .inheritedDescriptorNotUsable(
                reason: "exactly one socket besides the one named \"\(Self.restrictedName)\" is expected")
        }
        self.restricted = restricted.first.map { Self.first + Int32($0) }
        main = restricted.first == 0 ? Self.first + 1 : Self.first
    }
}
