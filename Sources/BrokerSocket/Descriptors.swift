internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// Decides whether another client may be accepted, from the limit (RLIMIT_NOFILE) and the open descriptors.
struct Descriptors {
    /// The number of descriptors available to client connections: all but the reserve.
    static var ofClients: Int { all.map { $0 - Limits.reservedDescriptors(of: $0) } ?? .max / 8 }

    private static var all: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// Whether a descriptor outside the reserve is free, and about half of the reserve is free. This is estimated from
    /// the lowest free descriptors, because the kernel always assigns the lowest free number.
    var hasRoom: Bool {
        guard let all = Self.all else { return true }
        let reserved = Limits.reservedDescriptors(of: all)
        let first = Int32(all - reserved)
        guard (0..<first).contains(watchword_lowest_free_descriptor(0)) else { return false }
        // Half of the reserve must be free for further connections to servers, for files and for the keyring.
        return (first..<(first + Int32(reserved) / 2)).contains(watchword_lowest_free_descriptor(first))
    }
}
