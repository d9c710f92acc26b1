internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

typealias CallID = ConnectionMachine.CallID

/// One client: its JSON-RPC state, what it said of itself, and what it is waiting for. Belongs to the broker's actor.
final class ClientConnection {
    let id: ConnectionID
    let peer: PeerIdentity
    private let link: any ClientLink
    private var machine = ConnectionMachine()

    /// What it has said of itself.
    var profile = ClientProfile()
    /// It has shut down its writing side: it cannot answer any more.
    var hasInputEnded = false
    /// Its fetches that are not answered yet.
    var fetches: Set<FetchID> = []
    let program: ClientProgram
    /// What it holds of the broker.
    let holdings: Holdings
    var backlog = ConnectionBacklog()

    init(id: ConnectionID, peer: PeerIdentity, link: any ClientLink, program: ClientProgram, _ limits: HoldingLimits) {
        self.program = program
        holdings = Holdings(of: .connection, limits, within: program.holdings)
        self.id = id
        self.peer = peer
        self.link = link
    }

    /// Whether it can be asked about its own fetches. What is asked by a result needs no answer on this connection.
    var isSubscribed: Bool {
        guard let delivery = profile.subscription?.delivery, delivery != .none else { return false }
        return delivery == .result || !hasInputEnded
    }

    var requester: Requester {
        Requester(
            name: profile.name, pid: Int(peer.pid), subject: peer.subject,
            isRestricted: peer.entrance == .restricted)
    }

    /// It is kept from what other programs of the user can do: fetching, and its own challenges, are all it gets.
    var isConfined: Bool { peer.entrance == .restricted || peer.subject.isSandboxed }

    var hasOpenCalls: Bool { machine.openCallCount > 0 }

    /// Or bodies to read.
    private var hasFetches: Bool { !fetches.isEmpty || holdings.bodies.heldCount > 0 }

    var ignoredReplies: Int { machine.ignoredReplies }

    func received(_ bytes: UnsafeRawBufferPointer) -> [ConnectionMachine.Event] { machine.received(bytes) }

    var unfinishedCount: Int? { machine.unfinishedCount }

    var messageCount: Int { machine.messageCount }

    func requestID(of call: CallID) -> RequestID { machine.requestID(of: call) }

    func send(_ bytes: [UInt8]) { link.send(bytes) }

    func complete(_ call: CallID, _ result: Result<JSON, RPCError>) {
        if let bytes = machine.complete(call, result) {
            link.send(bytes)
            // Others are not to take it for room until the link has said how much of it waits.
            if bytes.count > Self.smallBody { backlog.waitingBytes += bytes.count }
        }
        countReplies()
        closeIfDone()
    }

    /// Whether a body of this size may be sent in a reply: not to who does not read those that were sent.
    func hasRoom(forBody count: Int) -> Bool {
        guard count > Self.smallBody else { return true }
        return link.waitingBytes + machine.heldReplyBytes + 2 * count <= Limits.outgoingQueueBytes / 2
            && holdings.replies.leavesHalf(with: 2 * count)
    }

    private static let smallBody = 4096

    /// So much of what was sent to it waits to be read.
    func noteUnread(_ count: Int) {
        backlog.waitingBytes = count
        countReplies()
    }

    private func countReplies() {
        guard !backlog.isAbandoned else { return }
        backlog.unreadHeld.change(to: backlog.waitingBytes + machine.heldReplyBytes, in: holdings.replies)
    }

    /// Counts what has come of a message that is not complete.
    func noteUnfinishedBytes() { backlog.unfinishedHeld.change(to: machine.unreadCount, in: holdings.messages) }

    /// It leaves unread what others need room for.
    func abandon() {
        backlog.isAbandoned = true
        backlog.unreadHeld.change(to: 0, in: holdings.replies)
        link.abandon()
    }

    /// It has done what nobody may.
    func breakOff(_ reason: String) {
        for event in machine.breakOff(reason) {
            if case .send(let bytes) = event { link.send(bytes) }
        }
        link.close()
    }

    func notify(_ method: BrokerMethodName, _ params: JSON) {
        link.send(machine.notification(method: method.rawValue, params: params))
    }

    /// Returns the number under which the reply will come.
    func request(_ method: BrokerMethodName, _ params: JSON) -> Int {
        let (number, bytes) = machine.request(method: method.rawValue, params: params)
        link.send(bytes)
        return number
    }

    func withdraw(request: Int) {
        if let bytes = machine.withdraw(request: request) { link.send(bytes) }
    }

    func close() { link.close() }

    /// Whether it can become a stream of bytes: it owes nothing, and has sent nothing that was not read.
    var mayBeHandedOver: Bool {
        backlog.isLastEvent && machine.openCallCount == 1 && machine.unreadCount == 0 && !hasFetches
    }

    /// Answers `call` with an empty object, and gives the socket away behind that.
    func handOver(_ call: CallID, to taker: @escaping @Sendable (Int32) -> Void) {
        guard let bytes = machine.complete(call, .success([:])) else { return }
        link.handOver(after: bytes, to: taker)
    }

    /// A client that only asks, and shuts down its side behind the question, gets its replies before the connection ends.
    func closeIfDone() {
        if hasInputEnded && !hasOpenCalls && !hasFetches { link.close() }
    }
}

struct ClientProfile {
    /// What it calls itself.
    var name: String?
    var isInitialized = false
    /// How it wants to be asked about its own fetches; `nil` when it does not.
    var subscription: Subscription?
    /// Set while it asks people for others too.
    var agent: AgentRegistration?
}

/// What waits on a connection, on its way in or out.
struct ConnectionBacklog {
    var unfinished: UnfinishedMessage?
    var unfinishedHeld = Held()
    var unreadHeld = Held()
    /// Of what was sent, as far as is known.
    var waitingBytes = 0
    var isAbandoned = false
    /// Nothing came behind what is being handled.
    var isLastEvent = true
}

/// What an agent has said of itself.
struct AgentRegistration {
    let number: Int
    let name: String
    let locale: String?
    let priority: Int
    let methods: [AuthenticationMethod]?
    let maxPending: Int?
    /// Whether it is asked what programs may use.
    let asksConfirm: Bool

    func covers(_ space: ProtectionSpace) -> Bool { methods?.contains(space.authenticationMethod) ?? true }
}
