internal import Synchronization

/// A quota for one resource (bytes, fetches) of a connection, a program, or all clients. Usage also counts against the
/// wider quota.
///
/// An object with an atomic count rather than a value, because bodies grow on the threads of tokens too, and a value would
/// be out of date as soon as it was passed to a port.
public final class Quota: Sendable {
    /// The clients that the limit applies to.
    public let holder: Holder
    public let limit: Int
    private let wider: Quota?
    private let used = Atomic(0)

    public enum Holder: Sendable {
        case connection, program, allPrograms
    }

    /// - Parameter wider: the quota that the usage of this one also counts against.
    public init(_ limit: Int, of holder: Holder = .connection, within wider: Quota? = nil) {
        self.limit = limit
        self.holder = holder
        self.wider = wider
    }

    deinit { wider?.release(usage) }

    public var usage: Int { used.load(ordering: .relaxed) }

    /// Adds `count` to the usage, even above the limit.
    public func take(_ count: Int) {
        used.add(count, ordering: .relaxed)
        wider?.take(count)
    }

    public func release(_ count: Int) {
        used.subtract(count, ordering: .relaxed)
        wider?.release(count)
    }

    /// Whether the limits allow `count` more.
    public func hasRoom(for count: Int) -> Bool { shortage(for: count) == nil }

    /// Whether `count` more would leave the connection and its program at no more than half their limits. The quota of
    /// all programs may be filled completely.
    public func hasHeadroom(with count: Int) -> Bool {
        guard holder != .allPrograms else { return hasRoom(for: count) }
        return 2 * (usage + count) <= limit && (wider?.hasHeadroom(with: count) ?? true)
    }

    /// Returns the narrowest quota that `count` more would exceed; `nil` if there is none.
    public func shortage(for count: Int) -> QuotaExceeded? {
        let used = usage
        if used + count > limit { return QuotaExceeded(holder: holder, usage: used, limit: limit) }
        return wider?.shortage(for: count)
    }

    /// The quota that was exceeded.
    public struct QuotaExceeded: Sendable, Equatable {
        public var holder: Holder
        public var usage: Int
        public var limit: Int

        public init(holder: Holder, usage: Int, limit: Int) {
            self.holder = holder
            self.usage = usage
            self.limit = limit
        }

        /// The message for a quota of temporary files.
        public var diskText: String {
            let state = "(\(usage) of \(limit) bytes in use)"
            return "too much body data in temporary files for \(holder) \(state); read or cancel a body first"
        }
    }

    /// The usage of one body, released with the last reference to it.
    public final class Share: Sendable {
        private let quota: Quota
        private let count = Atomic(0)

        public init(of quota: Quota) { self.quota = quota }

        deinit { quota.release(count.load(ordering: .relaxed)) }

        /// Adds `added` bytes to the usage.
        public func grow(by added: Int) {
            count.add(added, ordering: .relaxed)
            quota.take(added)
        }
    }
}

extension Quota: Equatable {
    public static func == (left: Quota, right: Quota) -> Bool { left === right }
}

extension Quota.Share: Equatable {
    /// Whether both are the same object.
    public static func == (left: Quota.Share, right: Quota.Share) -> Bool { left === right }
}

extension Quota.Holder: CustomStringConvertible {
    /// The form in messages.
    public var description: String {
        switch self {
        case .connection: "this connection"
        case .program: "all connections of this program"
        case .allPrograms: "all programs"
        }
    }
}
