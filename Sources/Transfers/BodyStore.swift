internal import WatchwordCore

/// The complete body of a challenge or a redirect, which may become the result of the fetch. Used on the engine's loop only.
final class BodyStore {
    private static let block = 64 << 10

    private var copy: BodyCopy
    private var fed = 0

    /// - Parameter inMemory: whether a small body stays in memory.
    /// - Parameter disk: the quota for bytes in a file; `nil` for none.
    init(start: [UInt8], inMemory: Bool, disk: Quota? = nil) {
        copy = BodyCopy(
            limit: EngineLimits.wholeBodyBytes, memoryBytes: inMemory ? EngineLimits.bodyCopyMemoryBytes : 0, disk: disk
        )
        start.withUnsafeBytes { copy.append($0) }
    }

    var count: Int { copy.count }

    /// The quota that was exceeded; `nil` if none was.
    var shortage: Quota.QuotaExceeded? {
        if case .quota(let shortage)? = copy.loss { shortage } else { nil }
    }

    /// Appends bytes. Returns `false` if the body is too large or does not fit into the available space.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        copy.append(bytes)
        return !copy.isLost
    }

    /// Fills `flow` up to its limit. Returns `false` after the last byte, or if the flow has ended.
    func feed(_ flow: BodyFlow) -> Bool {
        while flow.hasRoom {
            var count = 0
            let part = [UInt8](unsafeUninitializedCapacity: Self.block) { buffer, initialized in
                count = copy.read(from: fed, into: UnsafeMutableRawBufferPointer(buffer))
                initialized = count
            }
            guard count > 0 else {
                flow.end(fed == copy.count ? .success(()) : .failure(.bodyUnreadable))
                return false
            }
            fed += count
            _ = part.withUnsafeBytes { flow.append($0) }
        }
        return flow.outcome == nil
    }
}
