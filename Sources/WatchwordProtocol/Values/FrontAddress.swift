/// The address on which a front listens: a TCP port of the loopback interface, or a Unix socket. Port 0 lets the kernel
/// choose a port.
public enum FrontAddress: Sendable, Hashable {
    case ipv4(port: Int)
    case ipv6(port: Int)
    /// An absolute path of at most `SocketLocation.longestPath` bytes.
    case socket(path: String)

    /// The TCP port; `nil` for a Unix socket.
    public var port: Int? {
        switch self {
        case .ipv4(let port), .ipv6(let port): port
        case .socket: nil
        }
    }

    /// Parses `127.0.0.1:3128`, `[::1]:3128` or an absolute path.
    public init(_ text: String) throws(Refusal) {
        if text.hasPrefix("/") {
            guard text.utf8.count <= SocketLocation.longestPath, !text.utf8.contains(0) else {
                throw Refusal(
                    "the path is longer than \(SocketLocation.longestPath) bytes or contains a NUL byte; use another"
                )
            }
            self = .socket(path: text)
            return
        }
        let isLong = text.hasPrefix("[::1]:")
        // guard: front-on-loopback
        let number = text.hasPrefix("127.0.0.1:") || isLong ? text.dropFirst(isLong ? 6 : 10) : ""
        guard !number.isEmpty, number.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(number),
            port <= 65_535
        else {
            throw Refusal(
                "\"\(text.shortened)\" is not an address for a front; write 127.0.0.1:PORT, [::1]:PORT or an "
                    + "absolute path for a Unix socket")
        }
        self = isLong ? .ipv6(port: port) : .ipv4(port: port)
    }

    /// The address in the form that `init` parses.
    public var text: String {
        switch self {
        case .ipv4(let port): "127.0.0.1:\(port)"
        case .ipv6(let port): "[::1]:\(port)"
        case .socket(let path): path
        }
    }
}
