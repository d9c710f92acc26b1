internal import Synchronization

/// How much of one kind of thing (bytes, fetches) somebody holds, and may: a connection, within what its program may, within
/// what all clients together may. Counted where things come in, and given back when nobody has them any more, on whatever
/// thread that is.
public final class Allowance: Sendable {
    /// Who is not to hold more than `limit`.
    public let holder: Holder
    public let limit: Int
    private let wider: Allowance?
    private let held = Atomic(0)

    public enum Holder: Sendable {
        case connection, program, everybody
    }

    /// - Parameter wider: what this one takes is taken there, too.
    public init(_ limit: Int, of holder: Holder = .connection, within wider: Allowance? = nil) {
        self.limit = limit
        self.holder = holder
        self.wider = wider
    }

    deinit { wider?.giveBack(heldCount) }

    public var heldCount: Int { held.load(ordering: .relaxed) }

    /// Takes `count` more, whether there is room or not: what is there, is there.
    public func take(_ count: Int) {
        held.add(count, ordering: .relaxed)
        wider?.take(count)
    }

    public func giveBack(_ count: Int) {
        held.subtract(count, ordering: .relaxed)
        wider?.giveBack(count)
    }

    /// Whether `count` more can be taken.
    public func hasRoom(for count: Int) -> Bool { shortage(for: count) == nil }

    /// Whether half of it, and of its program's, is free even with `count` more. Of what all have together it may be the rest:
    /// two programs at their half are not to be felt by the others.
    public func leavesHalf(with count: Int) -> Bool {
        guard holder != .everybody else { return hasRoom(for: count) }
        return 2 * (heldCount + count) <= limit && (wider?.leavesHalf(with: count) ?? true)
    }

    /// The narrowest that `count` more would make larger than it may be.
    public func shortage(for count: Int) -> Shortage? {
        let held = heldCount
        if held + count > limit { return Shortage(holder: holder, heldCount: held, limit: limit) }
        return wider?.shortage(for: count)
    }

    /// Why there is no room.
    public struct Shortage: Sendable, Equatable {
        public var holder: Holder
        public var heldCount: Int
        public var limit: Int

        public init(holder: Holder, heldCount: Int, limit: Int) {
            self.holder = holder
            self.heldCount = heldCount
            self.limit = limit
        }

        /// Why there is no room for more in temporary files.
        public var diskText: String {
            "\(holder) may keep \(limit) bytes of bodies in temporary files, and keeps \(heldCount); read or cancel a body first"
        }
    }

    /// What one body has, until the last who knows it lets it go.
    public final class Share: Sendable {
        private let allowance: Allowance
        private let count = Atomic(0)

        public init(of allowance: Allowance) { self.allowance = allowance }

        deinit { allowance.giveBack(count.load(ordering: .relaxed)) }

        /// Takes `added` bytes more.
        public func grow(by added: Int) {
            count.add(added, ordering: .relaxed)
            allowance.take(added)
        }
    }
}

extension Allowance: Equatable {
    public static func == (left: Allowance, right: Allowance) -> Bool { left === right }
}

extension Allowance.Share: Equatable {
    /// Two bodies that are equal are so wherever they are counted.
    public static func == (left: Allowance.Share, right: Allowance.Share) -> Bool { true }
}

extension Allowance.Holder: CustomStringConvertible {
    /// As it stands in a sentence.
    public var description: String {
        switch self {
        case .connection: "this connection"
        case .program: "this program, over all its connections,"
        case .everybody: "all programs together"
        }
    }
}
