internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The unread response bodies of one connection, by fetch ID.
struct OpenBodies {
    struct Entry {
        let transfer: TransferID
        /// The contents of `fetch/completed`, for a fetch begun with `fetch/start`.
        var result: FetchRunResult?
        /// The attach token, for a fetch begun with `fetch/start`.
        var token: String?
        /// The request body, if it may still be in transfer: a response can begin before its request has ended.
        var source: BodySourceID?
        /// The proofs of servers that can be checked only at the end of the body (RFC 7616 section 3.5).
        var proofs: [ResponseProof] = []
        /// The quota usage of a body that was received completely.
        var share: Quota.Share?
        /// Whether a `fetch/read` of this body is pending.
        var isBeingRead = false
    }

    private let quota: Quota
    private var entries: [String: Entry] = [:]

    /// - Parameter quota: the quota that each body counts against.
    init(_ quota: Quota) { self.quota = quota }

    var fetchIDs: [String] { entries.keys.sorted() }

    var all: [Entry] { Array(entries.values) }

    var count: Int { entries.count }

    subscript(fetchID: String) -> Entry? { entries[fetchID] }

    mutating func add(_ entry: Entry, for fetchID: String) {
        entries[fetchID] = entry
        quota.take(1)
    }

    /// Records whether a `fetch/read` is pending. No effect if the body has ended.
    mutating func setBeingRead(_ isBeingRead: Bool, _ fetchID: String) { entries[fetchID]?.isBeingRead = isBeingRead }

    mutating func remove(_ fetchID: String) -> Entry? {
        guard let entry = entries.removeValue(forKey: fetchID) else { return nil }
        quota.release(1)
        return entry
    }
}

/// The state of a fetch begun with `fetch/start`, until its response is received.
struct FetchSteps {
    /// The attach token.
    let token: String
    /// The attached socket that waits for the body; the broker owns the descriptor.
    var socket: Int32?
    /// The `fetch/read` that waits for the body.
    var read: (call: Call<FetchRead>, maxBytes: Int)?
}

/// The fetch that an attach token refers to.
struct StepReference {
    let connection: ConnectionID
    let fetch: FetchID
    /// The sides (request, response) that can still be attached.
    var freeSides: Set<FetchAttach.Side>
}

extension ClientConnection {
    /// Whether `other` may attach a body to a fetch of this connection: it has the same user and the same kind of socket, because
    /// tokens of the main socket are not valid on the restricted one, and vice versa. If either program is sandboxed, both must be
    /// the same program, according to the subjects determined when both connected.
    func admits(_ other: ClientConnection) -> Bool {
        guard other.peer.uid == peer.uid, other.peer.socketKind == peer.socketKind else { return false }
        guard other.peer.subject.isSandboxed || peer.subject.isSandboxed else { return true }
        return other.program === program || other.peer.subject.isSame(as: peer.subject)
    }
}
