internal import CPlatform
internal import Glibc
public import JSONText
public import WatchwordProtocol

/// A connection to the broker for a program that does one thing at a time. Every call blocks until its reply has come.
///
/// Not for use from several threads.
public final class BrokerConnection {
    /// What a client does with a challenge.
    public typealias ChallengeHandler = (IncomingChallenge) -> ChallengeAnswer?

    /// How long the broker may take to confirm that a call was cancelled.
    private static let cancellationMilliseconds: Int32 = 5000

    /// Where the broker is: an attached connection goes there, too.
    public let location: SocketLocation
    private let socket: UnixSocket
    private var decoder = FrameDecoder()
    private var received: [IncomingMessage] = []
    /// Questions that came in the middle of a call.
    private var postponed: [IncomingMessage] = []
    private var lastID = 0
    private var withdrawn: Set<Int> = []
    /// Becomes readable when the user interrupts the program; negative when nobody looks.
    public var interruptDescriptor: Int32 = -1
    /// The user has interrupted a call that was done all the same: what comes next ends by it.
    private var pendingInterrupt: Int32 = 0
    /// Told of each notification that is not about a challenge.
    public var onNotification: (String, JSON?) -> Void = { _, _ in }
    /// Answers `auth/canAuthenticate`, whose parameters it gets. Without it the broker hears that this client cannot say.
    public var onCanAuthenticate: ((JSON) -> Bool)?

    /// Asked when the broker asks, where a call says nothing else.
    public var onChallenge: ChallengeHandler = { _ in .useDefault }
    /// Asked in the place of `onChallenge`, by an agent that may also say that a program is to be asked for no more.
    public var onAgentChallenge: ((IncomingChallenge) -> AgentAnswer?)?
    /// Answers `auth/confirm`, for an agent; `nil` from it means that there was no time to answer.
    public var onConfirm: ((IncomingChallenge) -> JSON?)?
    /// Answers the broker's other requests; `nil` says that this client does not know the method.
    public var onRequest: (String, JSON) -> JSON? = { _, _ in nil }
    /// What else is to be done while the broker is waited for. Asked before each wait.
    public var watches: () -> [Watch] = { [] }
    /// How long a wait may take at most, before `wait(until:)` looks again. `nil`: as long as it likes.
    public var patience: () -> Duration? = { nil }
    /// How long the broker may take for one call, for calls that ask nobody. `nil`: as long as it likes.
    public var callLimit: Duration?

    public init(_ location: SocketLocation) throws(ClientFailure) {
        self.location = location
        socket = try UnixSocket(connectingTo: location)
    }

    /// Introduces the client, and says whether it answers challenges.
    @discardableResult
    public func initialize(name: String, version: String, delivery: ChallengeDelivery?) throws(ClientFailure) -> JSON {
        let params = InitializeParams(clientName: name, clientVersion: version, delivery: delivery)
        return try call(.initialize, params.json)
    }

    /// Makes one call. `onChallenge` is asked when the broker asks; `nil` from it means that there was no time to answer. Without
    /// one, a question waits for `wait(until:)`: a call that starts something has no time for people.
    public func call(
        _ method: MethodName, _ params: JSON = [:], onChallenge: ChallengeHandler? = nil
    ) throws(ClientFailure) -> JSON {
        lastID += 1
        let id = lastID
        try send(.request(id: .integer(id), method: method.rawValue, params: params))
        var interrupt: Int32 = 0
        let end = callLimit.map { ContinuousClock.now + $0 }
        while true {
            switch try nextStep(isCancelling: interrupt != 0, until: end) {
            case .interrupted(let signal):
                interrupt = signal
                try send(.notification(method: "$/cancelRequest", params: CancelRequestParams(id: .integer(id)).json))
            case .tooLate:
                if interrupt != 0 { throw .interrupted(signal: interrupt) }
                if let end, end <= .now { throw .silent }
            case .acted: break
            case .message(.result(.integer(id), let result)):
                pendingInterrupt = interrupt
                return result
            case .message(.error(.integer(id), let error)):
                throw interrupt != 0 ? .interrupted(signal: interrupt) : .refused(error)
            case .message(let message):
                if onChallenge == nil, case .request(_, BrokerMethodName.authChallenge.rawValue, _) = message {
                    postponed.append(message)
                } else {
                    try handle(message, onChallenge ?? self.onChallenge, isCancelling: interrupt != 0)
                }
            }
        }
    }

    /// Deals with what comes until `isDone`, which is looked at after each event. Throws when the user interrupts; what runs
    /// is then to be cancelled by calls of its own.
    public func wait(until isDone: () -> Bool) throws(ClientFailure) {
        received = postponed + received
        postponed = []
        while !isDone() {
            switch try nextStep(isCancelling: false) {
            case .interrupted(let signal): throw .interrupted(signal: signal)
            case .tooLate, .acted: break
            case .message(let message): try handle(message, onChallenge, isCancelling: false)
            }
        }
    }

    /// A connection for one side of a body. When the user interrupts it, the next wait hears of that, too.
    public func attach(token: String, side: FetchAttachParams.Side) throws(ClientFailure) -> AttachedStream {
        if pendingInterrupt != 0 { throw .interrupted(signal: pendingInterrupt) }
        do throws(ClientFailure) {
            return try AttachedStream(location, token: token, side: side, interruptDescriptor: interruptDescriptor)
        } catch {
            if case .interrupted(let signal) = error { pendingInterrupt = signal }
            throw error
        }
    }

    // MARK: Messages

    private func handle(
        _ message: IncomingMessage, _ onChallenge: ChallengeHandler, isCancelling: Bool
    ) throws(ClientFailure) {
        switch message {
        case .request(let id, BrokerMethodName.authChallenge.rawValue, let params):
            guard case .integer(let number) = id, !isCancelling, !withdrawn.contains(number), let params else { return }
            let challenge = IncomingChallenge(params: params, request: number, connection: self)
            let answer = onAgentChallenge.map { $0(challenge) } ?? onChallenge(challenge).map { AgentAnswer($0) }
            if let answer, !withdrawn.contains(number) {
                try send(.result(id: id, answer.json))
            }
        case .request(let id, BrokerMethodName.authConfirm.rawValue, let params?) where onConfirm != nil:
            guard case .integer(let number) = id, !isCancelling, !withdrawn.contains(number) else { return }
            let question = IncomingChallenge(params: params, request: number, connection: self)
            if let answer = onConfirm?(question), !withdrawn.contains(number) { try send(.result(id: id, answer)) }
        case .request(let id, BrokerMethodName.authCanAuthenticate.rawValue, let params?) where onCanAuthenticate != nil:
            try send(.result(id: id, ["answer": .boolean(onCanAuthenticate?(params) ?? false)]))
        case .request(let id, let method, let params):
            if !isCancelling, let result = onRequest(method, params ?? [:]) { return try send(.result(id: id, result)) }
            let error = RPCError(.methodNotFound, "this client does not answer \(method.shortened)")
            try send(.error(id: id, error))
        case .notification(let method, let params):
            note(method, params)
        case .result, .error, .brokenReply, .empty, .invalid:
            break
        }
    }

    private func note(_ method: String, _ params: JSON?) {
        guard method == BrokerMethodName.cancelRequest.rawValue else { return onNotification(method, params) }
        if case .integer(let number)? = (try? CancelRequestParams(params))?.id { withdrawn.insert(number) }
    }

    private enum Step {
        case message(IncomingMessage)
        case interrupted(signal: Int32)
        /// A watch has done something.
        case acted
        case tooLate
    }

    /// Once the user has interrupted, the wait is short, and nothing else is looked at.
    private func nextStep(
        isCancelling: Bool, until end: ContinuousClock.Instant? = nil
    ) throws(ClientFailure) -> Step {
        if pendingInterrupt != 0 && !isCancelling {
            defer { pendingInterrupt = 0 }
            return .interrupted(signal: pendingInterrupt)
        }
        while received.isEmpty {
            let watches = isCancelling ? [] : watches()
            var entries = [
                pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: isCancelling ? -1 : interruptDescriptor, events: Int16(POLLIN), revents: 0),
            ]
            entries += watches.map(\.entry)
            let rest = [patience(), end.map { max(.zero, $0 - .now) }].compactMap(\.self).min()
            let limit = rest.map { Int32(clamping: $0.wholeMilliseconds) } ?? -1
            let count = poll(&entries, UInt(entries.count), isCancelling ? Self.cancellationMilliseconds : limit)
            if count < 0 && errno == EINTR { continue }
            if count == 0 { return .tooLate }
            if entries[1].revents != 0 {
                return .interrupted(signal: max(1, watchword_read_interrupt(interruptDescriptor)))
            }
            if entries[0].revents != 0 { try receive() }
            let ready = zip(watches, entries.dropFirst(2)).filter { $0.1.revents != 0 }
            for (watch, _) in ready { watch.act() }
            if received.isEmpty && !ready.isEmpty { return .acted }
        }
        return .message(received.removeFirst())
    }

    private func receive() throws(ClientFailure) {
        var problem: ClientFailure?
        try socket.receive { bytes throws(ClientFailure) in
            do throws(FramingFailure) {
                try decoder.feed(bytes) { event in
                    guard case .message(let text) = event else {
                        problem = .protocolViolation("a message is too large")
                        return
                    }
                    let limits = JSONLimits(depth: Limits.messageDepth, values: Limits.messageValues)
                    do throws(JSONFailure) {
                        received.append(IncomingMessage(try JSON.parse(text, limits: limits)))
                    } catch {
                        problem = .protocolViolation("\(error)")
                    }
                }
            } catch {
                throw .protocolViolation("\(error)")
            }
        }
        if let problem { throw problem }
    }

    /// A message may hold a password: it is put together in memory that is wiped.
    private func send(_ message: OutgoingMessage) throws(ClientFailure) {
        let json = message.json
        let count = json.serializedCount
        let line = Secret(capacity: count + 1) { destination in
            json.write(UnsafeMutableRawBufferPointer(rebasing: destination[..<count]))
            destination[count] = UInt8(ascii: "\n")
            return count + 1
        }
        try line.withUnsafeBytes { bytes throws(ClientFailure) in try socket.send(bytes) }
    }

    // MARK: While somebody is being asked

    /// Readable when the broker has something to say.
    var descriptor: Int32 { socket.descriptor }

    /// Deals with what the broker has said meanwhile, but for other questions to people. Whether it still wants the answer to
    /// `request`.
    func stillWants(_ request: Int) -> Bool {
        do throws(ClientFailure) { try receive() } catch { return false }
        let messages = received
        received = []
        for message in messages {
            switch message {
            case .notification(let method, let params): note(method, params)
            case .request(_, let method, _) where !Self.isForPeople(method):
                try? handle(message, onChallenge, isCancelling: false)
            default: received.append(message)
            }
        }
        return !withdrawn.contains(request)
    }

    private static func isForPeople(_ method: String) -> Bool {
        [BrokerMethodName.authChallenge, .authConfirm].contains { $0.rawValue == method }
    }
}

/// A challenge that waits for its answer.
public struct IncomingChallenge {
    /// As it came: the parameters of `auth/challenge`.
    public let params: JSON
    let request: Int
    let connection: BrokerConnection

    /// To be watched while somebody thinks: when it is readable, `isStillOpen` says whether the answer is still wanted.
    public var descriptor: Int32 { connection.descriptor }

    public var isStillOpen: Bool { connection.stillWants(request) }

    /// What goes on meanwhile, to be watched as well.
    public var watches: [Watch] { connection.watches() }
}
