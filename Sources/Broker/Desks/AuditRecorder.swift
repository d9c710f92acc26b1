internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The cause of an event: a fetch of a client, or a direct call of a client. Both members are `nil` for actions of the
/// broker itself.
struct Cause {
    var client: AuditEvent.Client?
    var fetchID: String?

    static let broker = Cause(client: nil, fetchID: nil)
}

/// Writes audit records to the audit log, and sends them to the clients subscribed to events. Owns the subscriptions
/// and the counters for `server/status`.
final class AuditRecorder {
    struct Listener {
        let connection: ClientConnection
        let kinds: Set<AuditEvent.Kind>
    }

    private let clock: any BrokerClock
    private let port: (any AuditPort)?
    private(set) var listeners: [ConnectionID: Listener] = [:]
    private var repeatedEvents = AuditEventFilter()
    var counters = BrokerCounters()

    init(_ port: (any AuditPort)?, _ clock: any BrokerClock) { (self.port, self.clock) = (port, clock) }

    /// Whether there is neither an audit log nor a subscriber.
    private var isIdle: Bool { port == nil && listeners.isEmpty }

    /// - Parameter failures: the number of failed attempts of the fetch before this event.
    func record(
        _ kind: AuditEvent.Kind, _ cause: Cause, after failures: Int = 0,
        _ change: (inout AuditEvent) -> Void = { _ in }
    ) {
        guard !isIdle else { return }
        var event = AuditEvent(kind, timeMs: clock.sinceEpoch.wholeMilliseconds, client: cause.client)
        event.fetchID = cause.fetchID
        change(&event)
        guard let count = repeatedEvents.count(event, after: failures, now: clock.now) else { return }
        if count > 1 { event.count = count }
        port?.record(event)
        let interested = listeners.values.filter { $0.kinds.contains(kind) }
        guard !interested.isEmpty else { return }
        let params = event.json
        for listener in interested { listener.connection.notify(.event, params) }
    }

    /// `events/subscribe`: replaces an earlier subscription of this connection.
    func subscribe(_ params: EventsSubscribe, _ connection: ClientConnection) {
        listeners[connection.id] = params.kinds.isEmpty ? nil : Listener(connection: connection, kinds: params.kinds)
    }

    /// Removes the subscription of a closed connection, and adds its counter to the total.
    func forget(_ connection: ClientConnection) {
        listeners[connection.id] = nil
        counters.ignoredMessages += connection.ignoredMessages
    }

    /// Records an event that the state machine of a fetch has reported.
    func record(_ entry: AuditRecord, of fetch: RunningFetch) {
        guard !isIdle, let count = repeatedEvents.count(entry, by: fetch.client, now: clock.now) else { return }
        record(entry.kind, fetch.cause) { event in
            if count > 1 { event.count = count }
            event.origin = entry.origin.text
            event.space = entry.space
            event.user = entry.user
            event.source = entry.source
            event.persistence = entry.persistence
        }
    }

    /// Records that a credential was stored, forgotten or made the default. Clearing the session cache has its own
    /// event.
    func record(_ change: CredentialChange, _ cause: Cause) {
        let kind: AuditEvent.Kind
        switch change.kind {
        case .stored: kind = .credentialStored
        case .forgotten: kind = .credentialForgotten
        case .defaultChanged: kind = .credentialDefaultChanged
        case .cleared: return
        }
        record(kind, cause) { event in
            event.space = change.space
            event.user = change.user
            event.source = change.source
        }
    }

    /// - Parameter asked: the connection to which the question is delivered.
    func recordQuestion(_ challenge: Challenge, for fetch: RunningFetch, to asked: ClientConnection, at place: String) {
        record(.challengeAsked, challenge, fetch, by: place, place == "agent" ? asked : nil)
    }

    /// - Parameter agent: the agent that has answered; `nil` for a client.
    func recordAnswer(
        _ answer: ChallengeAnswer, to challenge: Challenge, for fetch: RunningFetch, by name: String,
        _ agent: ClientConnection?
    ) {
        record(.challengeAnswered, challenge, fetch, by: name, agent) { $0.action = answer.action }
    }

    /// Records that a challenge was not answered.
    /// - Parameter place: `client` or `agent`; `nil` if neither was asked.
    func recordSilence(
        _ reason: String, after challenge: Challenge, for fetch: RunningFetch, at place: String? = nil,
        _ agent: ClientConnection? = nil
    ) {
        record(.challengeUnanswered, challenge, fetch, by: place, agent) { $0.reason = reason }
    }

    private func record(
        _ kind: AuditEvent.Kind, _ challenge: Challenge, _ fetch: RunningFetch, by name: String?,
        _ agent: ClientConnection?, _ change: (inout AuditEvent) -> Void = { _ in }
    ) {
        record(kind, fetch.cause, after: challenge.previousFailureCount) { event in
            event.origin = fetch.origin.text
            event.space = SpacePattern(challenge.protectionSpace)
            event.by = name
            event.agent = agent?.auditClient
            change(&event)
        }
    }

    func recordConsentAsked(_ request: ConsentRequest, _ fetch: RunningFetch, _ agent: ClientConnection) {
        record(.consentAsked, fetch.cause) { event in
            event.fill(request, fetch)
            event.agent = agent.auditClient
        }
    }

    func recordConsent(
        _ consent: Consent?, _ request: ConsentRequest, _ fetch: RunningFetch, by name: String,
        _ agent: ClientConnection?
    ) {
        record(.consentAnswered, fetch.cause) { event in
            event.fill(request, fetch)
            event.action = consent?.rawValue
            event.by = name
            event.agent = agent?.auditClient
        }
    }

    /// Records a prompt of a program, or its end.
    func recordPrompt(
        _ kind: AuditEvent.Kind, _ prompt: OpenPrompt, _ agent: ClientConnection?,
        _ change: (inout AuditEvent) -> Void = { _ in }
    ) {
        record(kind, prompt.cause) { event in
            event.program = prompt.prompt.program
            event.agent = agent?.auditClient
            change(&event)
        }
    }

    /// Records that a method was refused with `locked` or `denied`. Ignores other errors.
    func recordDenial(_ error: RPCError, _ cause: Cause) {
        if let kind = error.kind, [.locked, .denied].contains(kind) { recordDenial(kind, cause) }
    }

    /// Records that an action of a client was refused.
    func recordDenial(_ kind: ErrorKind, _ cause: Cause, origin: Origin? = nil) {
        record(.denied, cause) { event in
            event.origin = origin?.text
            event.reason = kind.rawValue
        }
    }
}

extension ClientConnection {
    var auditClient: AuditEvent.Client {
        AuditEvent.Client(
            name: profile.name ?? profile.agent?.name, pid: Int(peer.pid), uid: Int(peer.uid),
            executable: peer.executable, script: peer.subject.script?.path.string)
    }

    /// The cause of this client's direct calls, outside a fetch.
    var cause: Cause { Cause(client: auditClient, fetchID: nil) }
}

extension AuditEvent {
    fileprivate mutating func fill(_ request: ConsentRequest, _ fetch: RunningFetch) {
        origin = fetch.origin.text
        space = SpacePattern(request.space)
        user = request.user
        source = request.source
        subject = request.subject.text.string
    }
}
