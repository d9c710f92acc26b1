internal import CPlatform
internal import Glibc
internal import WatchwordProtocol

/// Whether the process may take another client: with what it may have open, and with what it has.
struct Descriptors {
    /// How many connections of clients there may be.
    static var ofClients: Int { all.map { $0 - Limits.reservedDescriptors(of: $0) } ?? .max / 8 }

    private static var all: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// The kernel gives the lowest that is free, so the lowest number tells how many there are at least.
    var hasRoom: Bool {
        guard let all = Self.all else { return true }
        let reserved = Limits.reservedDescriptors(of: all)
        let first = Int32(all - reserved)
        guard (0..<first).contains(watchword_lowest_free_descriptor(0)) else { return false }
        // Of the reserve itself half has to be free: it is there for who has it not yet.
        return (first..<(first + Int32(reserved) / 2)).contains(watchword_lowest_free_descriptor(first))
    }
}
