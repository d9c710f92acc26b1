internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// On whose behalf something happens: a client, for one of its fetches or by hand. Both are `nil` for what the broker does by
/// itself.
struct Cause {
    var client: AuditEvent.Client?
    var fetchID: String?

    static let broker = Cause(client: nil, fetchID: nil)
}

/// The desk that records who used what for where, in the audit log and for the clients that have subscribed to it, and that
/// counts for `server/status`. It owns the listeners and the counters, and knows nothing of fetches but what they record.
final class AuditRecorder {
    private struct Listener {
        let connection: ClientConnection
        let kinds: Set<AuditEvent.Kind>
    }

    private let clock: any BrokerClock
    private let port: (any AuditPort)?
    private var listeners: [ConnectionID: Listener] = [:]
    private var repeatedEvents = RepeatedEvents()
    var counters = BrokerCounters()

    init(_ port: (any AuditPort)?, _ clock: any BrokerClock) { (self.port, self.clock) = (port, clock) }

    /// Whether nothing that is recorded goes anywhere.
    private var isIdle: Bool { port == nil && listeners.isEmpty }

    var hasListeners: Bool { !listeners.isEmpty }

    /// - Parameter failures: of the fetch, after which it is asked.
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

    /// `events/subscribe`: takes the place of an earlier subscription.
    func subscribe(_ params: EventsSubscribeParams, _ connection: ClientConnection) -> JSON {
        listeners[connection.id] = params.kinds.isEmpty ? nil : Listener(connection: connection, kinds: params.kinds)
        return [:]
    }

    /// The connection has ended.
    func forget(_ connection: ClientConnection) {
        listeners[connection.id] = nil
        counters.ignoredReplies += connection.ignoredReplies
    }

    /// What the machine of a fetch has noted.
    func record(_ note: AuditNote, of fetch: RunningFetch) {
        guard !isIdle, let count = repeatedEvents.count(note, by: fetch.client, now: clock.now) else { return }
        record(note.kind, fetch.cause) { event in
            if count > 1 { event.count = count }
            event.origin = note.origin.text
            event.space = note.space
            event.user = note.user
            event.source = note.source
            event.persistence = note.persistence
        }
    }

    /// What was stored or forgotten. What clears the session has an event of its own.
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

    /// - Parameter asked: the connection that has the question.
    func recordQuestion(_ challenge: Challenge, for fetch: RunningFetch, to asked: ClientConnection, at place: String) {
        record(.challengeAsked, challenge, fetch, by: place, place == "agent" ? asked : nil)
    }

    /// - Parameter agent: that has answered; `nil` for a client.
    func recordAnswer(
        _ answer: ChallengeAnswer, to challenge: Challenge, for fetch: RunningFetch, by name: String,
        _ agent: ClientConnection?
    ) {
        record(.challengeAnswered, challenge, fetch, by: name, agent) { $0.action = answer.action }
    }

    /// Somebody was asked, and never answered.
    /// - Parameter place: `client` or `agent`; `nil` where nobody was asked.
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

    /// The same of a method that was refused; other errors are not recorded.
    func recordDenial(_ error: RPCError, _ cause: Cause) {
        if let kind = error.kind, [.locked, .denied].contains(kind) { recordDenial(kind, cause) }
    }

    /// Something that a client wanted and did not get.
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
            executable: peer.executable)
    }

    /// Of what it does by hand.
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
