internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The response bodies of one connection that are read, or attached, in steps.
struct OpenBodies {
    struct Entry {
        let transfer: TransferID
        /// What `fetch/completed` says at the end, of a fetch that was begun with `fetch/start`.
        var result: FetchRunResult?
        /// It names the second connection.
        var token: String?
        /// Of the request, which may still be on its way: a response may begin before its request has ended.
        var source: BodySourceID?
        /// What its end has to prove.
        var proofs: [ResponseProof] = []
        /// Where a body that was there as a whole counts.
        var share: Allowance.Share?
        /// A `fetch/read` of it is not answered yet.
        var isBeingRead = false
    }

    private let allowance: Allowance
    private var entries: [String: Entry] = [:]

    /// - Parameter allowance: where each one counts.
    init(_ allowance: Allowance) { self.allowance = allowance }

    var fetchIDs: [String] { entries.keys.sorted() }

    var all: [Entry] { Array(entries.values) }

    var count: Int { entries.count }

    subscript(fetchID: String) -> Entry? { entries[fetchID] }

    mutating func add(_ entry: Entry, for fetchID: String) {
        entries[fetchID] = entry
        allowance.take(1)
    }

    /// Unless it has ended.
    mutating func setBeingRead(_ isBeingRead: Bool, _ fetchID: String) { entries[fetchID]?.isBeingRead = isBeingRead }

    mutating func remove(_ fetchID: String) -> Entry? {
        guard let entry = entries.removeValue(forKey: fetchID) else { return nil }
        allowance.giveBack(1)
        return entry
    }
}

/// What is special about a fetch that was begun with `fetch/start`, until its response is there.
struct FetchSteps {
    /// It names the second connection.
    let token: String
    /// A second connection that waits for the body; the descriptor is the broker's.
    var socket: Int32?
    /// A `fetch/read` that waits for it.
    var read: (call: CallID, maxBytes: Int)?
}

/// The fetch that an attach token stands for.
struct StepReference {
    let connection: ConnectionID
    let fetch: FetchID
    /// What has not been attached yet.
    var freeSides: Set<FetchAttachParams.Side>
}
