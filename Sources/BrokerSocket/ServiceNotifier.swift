internal import Glibc

/// Reports the state of the service to the service manager, by datagrams to `$NOTIFY_SOCKET` (sd_notify(3)).
///
/// Never blocks: a datagram that cannot be sent at once is dropped.
public final class ServiceNotifier: Sendable {
    /// A state to report. `status` is shown by `systemctl status`.
    public enum State: Equatable, Sendable {
        case ready(status: String)
        case reloading
        case stopping(status: String)
        case alive
    }

    private let address: [UInt8]
    private let descriptor: Int32

    /// - Parameter path: an absolute path, or `@` and a name in the abstract namespace (unix(7)).
    public init(path: String) throws(SocketFailure) {
        let longest = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
        let bytes = Array(path.utf8)
        switch bytes.first {
        case UInt8(ascii: "/") where bytes.count < longest: address = bytes + [0]
        case UInt8(ascii: "@") where bytes.count > 1 && bytes.count <= longest: address = [0] + bytes.dropFirst()
        default: throw .notificationSocketNotUsable
        }
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .systemCall("socket", path: path, error: errno) }
    }

    deinit { close(descriptor) }

    /// Reports a state, and returns whether the datagram was sent.
    @discardableResult
    public func say(_ state: State) -> Bool {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let text = Array(Self.text(state, monotonicMicroseconds: now.tv_sec * 1_000_000 + now.tv_nsec / 1000).utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: self.address) }
        let length = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + self.address.count
        let sent = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, text, text.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT), $0,
                    socklen_t(length))
            }
        }
        return sent == text.count
    }

    static func text(_ state: State, monotonicMicroseconds: Int) -> String {
        switch state {
        case .ready(let status): "READY=1\nSTATUS=\(oneLine(status))"
        case .reloading:
            "RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds)\nSTATUS=Reloading the configuration."
        case .stopping(let status): "STOPPING=1\nSTATUS=\(oneLine(status))"
        case .alive: "WATCHDOG=1"
        }
    }

    /// Replaces control characters, because a line break would begin another field.
    private static func oneLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 ? " " : $0 }))
    }
}

extension ServiceNotifier {
    /// Returns the interval of watchdog notifications: half the manager's timeout, as sd_watchdog_enabled(3)
    /// recommends. `nil` if the watchdog is not enabled for this process.
    public static func watchdogInterval(environment: (String) -> String?, pid: Int32) -> Duration? {
        guard let text = environment("WATCHDOG_USEC"), let microseconds = Int64(text), microseconds > 1,
            environment("WATCHDOG_PID").map({ Int32($0) == pid }) ?? true
        else { return nil }
        return .microseconds(microseconds / 2)
    }
}
