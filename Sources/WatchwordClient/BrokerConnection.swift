internal import CPlatform
internal import Glibc
public import JSONText
public import WatchwordProtocol

/// A connection to the broker for a program that does one thing at a time. Every call blocks until its reply is received.
///
/// This class is not thread-safe. It has many properties because a program sets only the handlers that it needs.
public final class BrokerConnection {
    /// Returns the answer to a challenge; `nil` to send none, for example because the challenge was withdrawn.
    public typealias ChallengeHandler = (IncomingChallenge) -> ChallengeAnswer?

    /// How long the broker may take to confirm that a call was cancelled.
    private static let cancellationMilliseconds: Int32 = 5000

    /// The broker's socket, also for attached connections.
    public let location: SocketLocation
    private let channel: MessageChannel
    /// Challenges that were received during a call.
    private var postponed: [IncomingMessage] = []
    private var lastID = 0
    private var withdrawn: Set<Int> = []
    /// The ids of the challenges that a login in a browser has answered.
    private var answeredInBrowser: Set<String> = []
    /// Becomes readable when the user interrupts the program; negative if interrupts are not handled.
    public var interruptDescriptor: Int32 = -1
    /// The signal that interrupted a call which completed nevertheless; it ends the next call or wait. 0 for none.
    private var pendingInterrupt: Int32 = 0
    /// Called with each notification except `$/cancelRequest`.
    public var onNotification: (String, JSON?) -> Void = { _, _ in }
    /// Answers `auth/canAuthenticate`, called with its parameters. Without it the broker gets an error.
    public var onCanAuthenticate: ((JSON) -> Bool)?

    /// Answers the challenges that `wait(until:)` handles.
    public var onChallenge: ChallengeHandler = { _ in .useDefault }
    /// Answers challenges in place of every other handler, for an agent. Its answer may also stop prompts for a program.
    public var onAgentChallenge: ((IncomingChallenge) -> AgentAnswer?)?
    /// Answers `auth/confirm`, for an agent; returns `nil` to send no answer.
    public var onConfirm: ((IncomingChallenge) -> JSON?)?
    /// Answers `auth/prompt`, for an agent; returns `nil` to send no answer. The answer may contain a secret.
    public var onPrompt: ((IncomingChallenge) -> JSON?)?
    /// Answers the broker's other requests; returns `nil` for an unknown method.
    public var onRequest: (String, JSON) -> JSON? = { _, _ in nil }
    /// Returns further descriptors to watch while waiting for the broker. Called before each wait.
    public var watches: () -> [Watch] = { [] }
    /// Returns the time after which a wait returns, so that `wait(until:)` checks its condition; `nil` for no limit.
    public var maxWait: () -> Duration? = { nil }
    /// The time limit for one call, for calls that do not lead to prompts; `nil` for no limit.
    public var callLimit: Duration?

    public init(_ location: SocketLocation) throws(ClientFailure) {
        self.location = location
        channel = try MessageChannel(connectingTo: location)
    }

    /// Sends `initialize` with the client's name and its delivery of challenges.
    @discardableResult
    public func initialize(name: String, version: String, delivery: ChallengeDelivery?) throws(ClientFailure) -> JSON {
        try call(Initialize(clientName: name, clientVersion: version, delivery: delivery))
    }

    /// Makes one call. `onChallenge` answers challenges during the call. Without it, challenges are postponed until
    /// `wait(until:)`, so that a call that only starts something does not wait for a person.
    @discardableResult
    public func call(
        _ method: some CallableMethod, onChallenge: ChallengeHandler? = nil
    ) throws(ClientFailure) -> JSON {
        try call(type(of: method).name, method.json, onChallenge: onChallenge)
    }

    /// Calls a method by its name.
    @discardableResult
    public func call(
        _ method: String, _ params: JSON, onChallenge: ChallengeHandler? = nil
    ) throws(ClientFailure) -> JSON {
        lastID += 1
        let id = lastID
        try channel.send(.request(id: .integer(id), method: method, params: params))
        var interrupt: Int32 = 0
        let end = callLimit.map { ContinuousClock.now + $0 }
        while true {
            switch try nextStep(isCancelling: interrupt != 0, until: end) {
            case .interrupted(let signal):
                interrupt = signal
                try channel.send(
                    .notification(method: "$/cancelRequest", params: CancelRequestParams(id: .integer(id)).json))
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

    /// Handles messages until `isDone` returns true; calls `isDone` at the start and after each event. Throws if the user
    /// interrupts; running fetches must then be cancelled by further calls.
    public func wait(until isDone: () -> Bool) throws(ClientFailure) {
        channel.putBack(postponed)
        postponed = []
        while !isDone() {
            switch try nextStep(isCancelling: false) {
            case .interrupted(let signal): throw .interrupted(signal: signal)
            case .tooLate, .acted: break
            case .message(let message): try handle(message, onChallenge, isCancelling: false)
            }
        }
    }

    /// Opens a connection for one side of a body. An interrupt ends this call and the next wait.
    public func attach(token: String, side: FetchAttach.Side) throws(ClientFailure) -> AttachedStream {
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
                try channel.send(.result(id: id, answer.json))
            }
        case .request(let id, let method, let params?) where handler(of: method) != nil:
            guard case .integer(let number) = id, !isCancelling, !withdrawn.contains(number) else { return }
            let question = IncomingChallenge(params: params, request: number, connection: self)
            if let answer = handler(of: method)?(question), !withdrawn.contains(number) {
                try channel.send(.result(id: id, answer))
            }
        case .request(let id, BrokerMethodName.authCanAuthenticate.rawValue, let params?) where onCanAuthenticate != nil:
            try channel.send(.result(id: id, ["answer": .boolean(onCanAuthenticate?(params) ?? false)]))
        case .request(let id, let method, let params):
            if !isCancelling, let result = onRequest(method, params ?? [:]) {
                return try channel.send(.result(id: id, result))
            }
            let error = RPCError(.methodNotFound, "this client does not answer \(method.shortened)")
            try channel.send(.error(id: id, error))
        case .notification(let method, let params):
            receiveNotification(method, params)
        case .result, .error, .malformedReply, .empty, .invalid:
            break
        }
    }

    /// Returns the handler of a request to agents that is not a challenge.
    private func handler(of method: String) -> ((IncomingChallenge) -> JSON?)? {
        switch BrokerMethodName(rawValue: method) {
        case .authConfirm: onConfirm
        case .authPrompt: onPrompt
        default: nil
        }
    }

    private func receiveNotification(_ method: String, _ params: JSON?) {
        switch BrokerMethodName(rawValue: method) {
        case .cancelRequest:
            if case .integer(let number)? = (try? CancelRequestParams(Members(params)))?.id { withdrawn.insert(number) }
        case .authCancelled:
            if params?["reason"]?.string == "answered", let id = params?["challengeId"]?.string {
                answeredInBrowser.insert(id)
            }
            onNotification(method, params)
        default: onNotification(method, params)
        }
    }

    private enum Step {
        case message(IncomingMessage)
        case interrupted(signal: Int32)
        /// A watch has acted.
        case acted
        case tooLate
    }

    /// Waits for the next event. After an interrupt the wait is short, and only the broker is watched.
    private func nextStep(
        isCancelling: Bool, until end: ContinuousClock.Instant? = nil
    ) throws(ClientFailure) -> Step {
        if pendingInterrupt != 0 && !isCancelling {
            defer { pendingInterrupt = 0 }
            return .interrupted(signal: pendingInterrupt)
        }
        while channel.received.isEmpty {
            let watches = isCancelling ? [] : watches()
            var entries = [
                pollfd(fd: channel.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: isCancelling ? -1 : interruptDescriptor, events: Int16(POLLIN), revents: 0),
            ]
            entries += watches.map(\.entry)
            let rest = [maxWait(), end.map { max(.zero, $0 - .now) }].compactMap(\.self).min()
            let limit = rest.map { Int32(clamping: $0.wholeMilliseconds) } ?? -1
            let count = poll(&entries, UInt(entries.count), isCancelling ? Self.cancellationMilliseconds : limit)
            if count < 0 && errno == EINTR { continue }
            if count == 0 { return .tooLate }
            if entries[1].revents != 0 {
                return .interrupted(signal: max(1, watchword_read_interrupt(interruptDescriptor)))
            }
            if entries[0].revents != 0 { try channel.receive() }
            let ready = zip(watches, entries.dropFirst(2)).filter { $0.1.revents != 0 }
            for (watch, _) in ready { watch.act() }
            if channel.received.isEmpty && !ready.isEmpty { return .acted }
        }
        return channel.takeFirst().map { .message($0) } ?? .acted
    }

    // MARK: During a prompt

    /// Becomes readable when the broker has sent a message.
    package var descriptor: Int32 { channel.descriptor }

    /// Handles the received messages, except further challenges and confirmations. Returns whether the broker still expects the
    /// answer to `request`.
    /// - Parameter isReadable: whether `descriptor` is readable.
    func isStillPending(_ request: Int, isReadable: Bool) -> Bool {
        if isReadable { do throws(ClientFailure) { try channel.receive() } catch { return false } }
        var others: [IncomingMessage] = []
        for message in channel.takeAll() {
            switch message {
            case .notification(let method, let params): receiveNotification(method, params)
            case .request(_, let method, _) where !Self.isForPeople(method):
                try? handle(message, onChallenge, isCancelling: false)
            default: others.append(message)
            }
        }
        channel.putBack(others)
        return !withdrawn.contains(request)
    }

    func isAnsweredInBrowser(_ challenge: String?) -> Bool { challenge.map(answeredInBrowser.contains) ?? false }

    private static func isForPeople(_ method: String) -> Bool {
        [BrokerMethodName.authChallenge, .authConfirm, .authPrompt].contains { $0.rawValue == method }
    }
}

/// A challenge that waits for its answer.
public struct IncomingChallenge {
    /// The parameters of `auth/challenge`.
    public let params: JSON
    let request: Int
    let connection: BrokerConnection

    /// The descriptor to watch during a prompt. When the prompt begins, and when the descriptor is readable, call `isStillOpen`.
    public var descriptor: Int32 { connection.descriptor }

    /// Handles what the broker has sent meanwhile, for example about other fetches, and returns whether it still expects the
    /// answer. Messages may have been received together with the challenge.
    /// - Parameter isReadable: whether `descriptor` is readable; reading from it would block otherwise.
    public func isStillOpen(isReadable: Bool) -> Bool { connection.isStillPending(request, isReadable: isReadable) }

    /// Whether the broker has withdrawn the challenge because the person has logged in in a browser.
    public var isAnsweredInBrowser: Bool { connection.isAnsweredInBrowser(params["challengeId"]?.string) }

    /// Further descriptors to watch during a prompt.
    public var watches: [Watch] { connection.watches() }
}
