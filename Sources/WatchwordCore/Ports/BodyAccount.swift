internal import Synchronization

/// How much the bodies of one client's responses hold in memory together. Counted where they come in; given back when nobody
/// has them any more, on whatever thread that is.
public final class BodyAccount: Sendable {
    private let held = Atomic(0)
    /// In bytes. Above it bodies are not to grow in memory.
    public let limit: Int

    public init(limit: Int) { self.limit = limit }

    /// In bytes.
    public var heldBytes: Int { held.load(ordering: .relaxed) }

    /// Whether there is room for `count` more bytes.
    public func hasRoom(for count: Int) -> Bool { heldBytes + count <= limit }

    /// What one body has, until the last who knows it lets it go.
    public final class Share: Sendable {
        private let account: BodyAccount
        private let count = Atomic(0)

        public init(of account: BodyAccount) { self.account = account }

        deinit { account.held.subtract(count.load(ordering: .relaxed), ordering: .relaxed) }

        /// Takes `added` bytes more.
        public func grow(by added: Int) {
            count.add(added, ordering: .relaxed)
            account.held.add(added, ordering: .relaxed)
        }
    }
}

extension BodyAccount: Equatable {
    public static func == (left: BodyAccount, right: BodyAccount) -> Bool { left === right }
}

extension BodyAccount.Share: Equatable {
    /// Two bodies that are equal are so wherever they are counted.
    public static func == (left: BodyAccount.Share, right: BodyAccount.Share) -> Bool { true }
}
