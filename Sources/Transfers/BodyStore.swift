internal import WatchwordCore

/// The body of a response of which nobody knows yet what becomes: it asks for a log-in, or leads elsewhere. Lives on the engine's
/// thread.
final class BodyStore {
    private static let block = 64 << 10

    private var copy: BodyCopy
    private var fed = 0

    /// - Parameter inMemory: as long as it is small.
    /// - Parameter disk: the quota for what is in a file; `nil` for none.
    init(start: [UInt8], inMemory: Bool, disk: Allowance? = nil) {
        copy = BodyCopy(
            limit: EngineLimits.wholeBodyBytes, memoryBytes: inMemory ? EngineLimits.bodyCopyMemoryBytes : 0, disk: disk
        )
        start.withUnsafeBytes { copy.append($0) }
    }

    var count: Int { copy.count }

    /// The quota that has no room for the body.
    var shortage: Allowance.Shortage? {
        if case .quota(let shortage)? = copy.loss { shortage } else { nil }
    }

    /// `false` when it is too large, or there is no room for it.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        copy.append(bytes)
        return !copy.isLost
    }

    /// Gives what there is room for. `false` when that was all, or nobody wants more.
    func feed(_ flow: BodyFlow) -> Bool {
        while flow.hasRoom {
            var count = 0
            let part = [UInt8](unsafeUninitializedCapacity: Self.block) { buffer, initialized in
                count = copy.read(from: fed, into: UnsafeMutableRawBufferPointer(buffer))
                initialized = count
            }
            guard count > 0 else {
                flow.end(fed == copy.count ? .success(()) : .failure(.unreadable))
                return false
            }
            fed += count
            _ = part.withUnsafeBytes { flow.append($0) }
        }
        return flow.outcome == nil
    }
}

extension TransferFailure {
    fileprivate static let unreadable = TransferFailure(.internalError, "What was kept of the body cannot be read.")
}
