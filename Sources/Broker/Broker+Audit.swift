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

/// The account of who used what for where: for the audit log, and for those who have subscribed to it.
extension Router {
    /// - Parameter failures: of the fetch, after which it is asked.
    func record(
        _ kind: AuditEvent.Kind, _ cause: Cause, after failures: Int = 0,
        _ change: (inout AuditEvent) -> Void = { _ in }
    ) {
        guard audit != nil || !eventListeners.isEmpty else { return }
        var event = AuditEvent(kind, timeMs: clock.sinceEpoch.wholeMilliseconds, client: cause.client)
        event.fetchID = cause.fetchID
        change(&event)
        guard let count = repeatedEvents.count(event, after: failures, now: clock.now) else { return }
        if count > 1 { event.count = count }
        audit?.record(event)
        guard !eventListeners.isEmpty else { return }
        let listeners = eventListeners.compactMap { connections[$0] }.filter { $0.eventKinds.contains(kind) }
        guard !listeners.isEmpty else { return }
        let params = event.json
        for listener in listeners { listener.notify(.event, params) }
    }

    /// `events/subscribe`: takes the place of an earlier subscription.
    func subscribe(_ params: EventsSubscribeParams, _ connection: ClientConnection) -> JSON {
        connection.eventKinds = params.kinds
        if params.kinds.isEmpty {
            eventListeners.remove(connection.id)
        } else {
            eventListeners.insert(connection.id)
        }
        return [:]
    }

    func cause(_ fetch: RunningFetch) -> Cause { Cause(client: fetch.client, fetchID: "\(fetch.id)") }

    /// What the machine of a fetch has noted.
    func record(_ note: AuditNote, of fetch: RunningFetch) {
        guard audit != nil || !eventListeners.isEmpty,
            let count = repeatedEvents.count(note, by: fetch.client, now: clock.now)
        else { return }
        record(note.kind, cause(fetch)) { event in
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
        record(.challengeAsked, cause(fetch), after: challenge.previousFailureCount) { event in
            event.origin = fetch.origin.text
            event.space = SpacePattern(challenge.protectionSpace)
            event.by = place
            if place == "agent" { event.agent = asked.auditClient }
        }
    }

    func recordAnswer(_ question: OpenQuestion, _ answer: ChallengeAnswer, by name: String) {
        guard let fetch = fetches[question.fetch] else { return }
        record(.challengeAnswered, cause(fetch), after: question.challenge.previousFailureCount) { event in
            event.origin = fetch.origin.text
            event.space = SpacePattern(question.challenge.protectionSpace)
            event.action = answer.action
            event.by = name
            if case .agent(let id) = question.place { event.agent = connections[id]?.auditClient }
        }
    }

    /// Somebody was asked, and never answered.
    func recordSilence(_ question: OpenQuestion, _ fetch: RunningFetch, _ reason: NoAnswer) {
        record(.challengeUnanswered, cause(fetch), after: question.challenge.previousFailureCount) { event in
            event.origin = fetch.origin.text
            event.space = SpacePattern(question.challenge.protectionSpace)
            event.reason = reason.rawValue
            event.by = question.place.word
            if case .agent(let id) = question.place { event.agent = connections[id]?.auditClient }
        }
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
            name: name ?? agent?.name, pid: Int(peer.pid), uid: Int(peer.uid), executable: peer.executable)
    }

    /// Of what it does by hand.
    var cause: Cause { Cause(client: auditClient, fetchID: nil) }
}
