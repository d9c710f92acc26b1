internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// What a person has just said at an agent, and what follows from it for others who would ask the same.
extension Broker {
    /// Whether the person has cancelled this very question a moment ago. The fetch is then cancelled as well.
    func isJustCancelled(_ challenge: Challenge, for fetch: RunningFetch) -> Bool {
        guard cancels.covers(challenge, now: clock.now) else { return false }
        log.info("cancelled as another fetch was a moment ago", metadata: ["fetch": "\(fetch.id)"])
        recordDenial(.challengeCancelled, cause(fetch), origin: fetch.origin)
        perform(table.answered(.cancel, for: fetch.id, environment))
        return true
    }

    /// An agent has cancelled: that counts for all for whom agents are asked the same, whether or not they share a login.
    func noteCancel(of question: OpenQuestion) {
        cancels.note(question.challenge, now: clock.now)
        let subject = RecentCancels.Subject(question.challenge)
        let same = questions.filter { entry in
            guard case .agent = entry.value.place else { return false }
            return RecentCancels.Subject(entry.value.challenge) == subject
        }
        for (id, other) in same.sorted(by: { $0.value.fetch.number < $1.value.fetch.number }) {
            takeBack(id, other, because: .cancelled)
            resolve(id, with: .cancel, by: other.place.word)
        }
    }
}
