internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

typealias CallID = ConnectionMachine.CallID

/// The connection of one client: its JSON-RPC state, profile, running fetches and quotas. Used on the broker's actor
/// only.
final class ClientConnection {
    let id: ConnectionID
    let peer: PeerIdentity
    private let link: any ClientLink
    private var machine = ConnectionMachine()

    /// The name, subscription and agent registration of the client.
    var profile = ClientProfile()
    /// Whether the client has shut down its writing side, so that it cannot answer any more.
    var hasInputEnded = false
    /// The running fetches of this connection.
    var fetches: Set<FetchID> = []
    let program: ClientProgram
    /// The quotas of this connection. Usage also counts against the quotas of `program`.
    let quotas: ClientQuotas
    var backlog = ConnectionBacklog()
    private var earlyBytes: Int
    /// Whether the message being handled may have been sent before the process was identified, by another program that has become
    /// this one (exec). Such a message releases no secret, and uses no grant of a program that others can become.
    private(set) var isEarly = false

    init(id: ConnectionID, peer: PeerIdentity, link: any ClientLink, program: ClientProgram, _ limits: QuotaLimits) {
        self.program = program
        quotas = ClientQuotas(of: .connection, limits, within: program.quotas)
        self.id = id
        self.peer = peer
        self.link = link
        earlyBytes = peer.earlyBytes
    }

    /// Whether the client can be asked about its own fetches.
    var isSubscribed: Bool { !hasInputEnded && (profile.subscription?.delivery ?? .none) != .none }

    var requester: Requester {
        Requester(
            name: profile.name, pid: Int(peer.pid), subject: peer.subject,
            isRestricted: peer.socketKind == .restricted)
    }

    /// Whether the client may only fetch and answer its own challenges, because it is on the restricted socket or in a
    /// sandbox.
    var isConfined: Bool { peer.socketKind == .restricted || peer.subject.isSandboxed }  // guard: sandbox-methods

    var hasOpenCalls: Bool { machine.openCallCount > 0 }

    /// Whether fetches are running or response bodies are unread.
    private var hasFetches: Bool { !fetches.isEmpty || quotas.bodies.usage > 0 }

    var ignoredMessages: Int { machine.ignoredMessages }

    func received(_ bytes: UnsafeRawBufferPointer) -> [ConnectionMachine.Event] {
        isEarly = earlyBytes > 0 || isEarly && machine.unreadCount > 0
        earlyBytes -= min(bytes.count, earlyBytes)
        return machine.received(bytes)
    }

    var unfinishedCount: Int? { machine.unfinishedCount }

    var messageCount: Int { machine.messageCount }

    func requestID(of call: CallID) -> RequestID { machine.requestID(of: call) }

    func send(_ bytes: [UInt8]) { link.send(bytes) }

    func complete(_ call: CallID, _ result: Result<JSON, RPCError>) {
        if let bytes = machine.complete(call, result) {
            link.send(bytes)
            // Counted at once, because the link reports unsent bytes later, and the next reply must not use the same
            // room.
            if bytes.count > Self.smallBody { backlog.waitingBytes += bytes.count }
        }
        countReplies()
        closeIfDone()
    }

    func complete<M: Method>(_ call: Call<M>, _ result: Result<M.Result, RPCError>) {
        complete(call.id, result.map { M.json($0) })
    }

    /// Whether a reply may include a body of this size. A client that leaves earlier replies unread gets no large
    /// bodies.
    func hasRoom(forBody count: Int) -> Bool {
        guard count > Self.smallBody else { return true }
        return link.waitingBytes + machine.pendingReplyBytes + 2 * count <= Limits.outgoingQueueBytes / 2
            && quotas.replies.hasHeadroom(with: 2 * count)
    }

    private static let smallBody = 4096

    /// Records the number of sent bytes that the client has not read.
    func recordUnread(_ count: Int) {
        backlog.waitingBytes = count
        countReplies()
    }

    private func countReplies() {
        guard !backlog.isAbandoned else { return }
        backlog.unreadUsage.change(to: backlog.waitingBytes + machine.pendingReplyBytes, in: quotas.replies)
    }

    func recordIncompleteBytes() { backlog.unfinishedUsage.change(to: machine.unreadCount, in: quotas.messages) }

    /// Closes the connection at once and drops its unsent output, because the client leaves too much unread.
    func abandon() {
        backlog.isAbandoned = true
        backlog.unreadUsage.change(to: 0, in: quotas.replies)
        link.abandon()
    }

    /// Sends the reason to the client and closes the connection, because the client has exceeded a limit.
    func abortConnection(_ reason: String) {
        for event in machine.abortConnection(reason) {
            if case .send(let bytes) = event { link.send(bytes) }
        }
        link.close()
    }

    func notify(_ method: BrokerMethodName, _ params: JSON) {
        link.send(machine.notification(method: method.rawValue, params: params))
    }

    /// Sends a request to the client, and returns its number, by which the reply is matched.
    func request(_ method: BrokerMethodName, _ params: JSON) -> Int {
        let (number, bytes) = machine.request(method: method.rawValue, params: params)
        link.send(bytes)
        return number
    }

    func withdraw(request: Int) {
        if let bytes = machine.withdraw(request: request) { link.send(bytes) }
    }

    func close() { link.close() }

    /// Whether the socket can be detached to carry a body: the connection has no other open calls, no fetches or
    /// bodies, and no unhandled input.
    var canDetach: Bool {
        backlog.isLastEvent && machine.openCallCount == 1 && machine.unreadCount == 0 && !hasFetches
    }

    /// Answers `call` with an empty object, then passes the socket to `taker`.
    func detach(_ call: CallID, to taker: @escaping @Sendable (Int32) -> Void) {
        guard let bytes = machine.complete(call, .success([:])) else { return }
        link.detach(after: bytes, to: taker)
    }

    /// Closes the connection if the client has shut down its writing side and has got all replies and bodies.
    func closeIfDone() {
        if hasInputEnded && !hasOpenCalls && !hasFetches { link.close() }
    }
}

struct ClientProfile {
    /// The client's name from `initialize`.
    var name: String?
    var isInitialized = false
    /// The subscription to challenges for its own fetches, if any.
    var subscription: Subscription?
    /// Set while the client is an agent.
    var agent: AgentRegistration?
}

/// The incomplete input and the unread output of a connection.
struct ConnectionBacklog {
    var unfinished: PartialMessage?
    var unfinishedUsage = QuotaUsage()
    var unreadUsage = QuotaUsage()
    /// The number of sent bytes that the client has not read: as last reported by the link, plus large replies sent
    /// since then.
    var waitingBytes = 0
    var isAbandoned = false
    /// Whether the event being handled is the last one of the bytes just read.
    var isLastEvent = true
}

/// The registration of an agent (`agent/register`).
struct AgentRegistration {
    let number: Int
    let name: String
    let locale: String?
    let priority: Int
    let methods: [AuthenticationMethod]?
    let maxPending: Int?
    /// Whether the agent shows consent prompts (`auth/confirm`).
    let asksConfirm: Bool
    /// Whether the agent shows prompts of programs (`auth/prompt`).
    let asksPrompt: Bool

    func covers(_ space: ProtectionSpace) -> Bool { methods?.contains(space.authenticationMethod) ?? true }
}
