internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// What a person has just said at an agent, and what follows from it for others who would ask the same.
extension Router {
    /// Whether the person has cancelled this very question a moment ago. The fetch is then cancelled as well.
    func isJustCancelled(_ challenge: Challenge, for fetch: RunningFetch) -> Bool {
        guard prompts.cancels.covers(challenge, now: clock.now) else { return false }
        log.info("cancelled as another fetch was a moment ago", metadata: ["fetch": "\(fetch.id)"])
        audit.recordDenial(.challengeCancelled, fetch.cause, origin: fetch.origin)
        perform(table.answered(.cancel, for: fetch.id, environment))
        return true
    }

    /// Whether an agent may be asked again for this program. The fetch fails otherwise.
    func mayPrompt(about challenge: Challenge, for fetch: RunningFetch) -> Bool {
        let site = PromptLimiter.Site(challenge.protectionSpace)
        guard let wait = prompts.challenges.wait(of: fetch.program, at: site, now: clock.now) else { return true }
        let seconds = Int(wait.components.seconds) + 1
        log.notice("a program asks too often", metadata: ["fetch": "\(fetch.id)", "seconds": "\(seconds)"])
        audit.recordDenial(.busy, fetch.cause, origin: fetch.origin)
        let text =
            "the last questions of this program were cancelled; it may ask about \(fetch.origin.text) again in \(seconds) s"
        cancel(fetch, FetchFailure(.busy, text))
        return false
    }

    /// The same for what the program wants to use; without a question nothing that is kept is used.
    func mayConfirm(_ request: ConsentRequest, for fetch: RunningFetch) -> Bool {
        if prompts.stopped.contains(fetch.program) {
            prompts.stopped.noteUnasked(fetch.program)
            return false
        }
        return prompts.consents.wait(of: fetch.program, at: PromptLimiter.Site(request.space), now: clock.now) == nil
    }

    /// A person has answered at an agent.
    func noteAnswer(_ answer: ChallengeAnswer, to question: OpenQuestion, of program: String) {
        let site = PromptLimiter.Site(question.challenge.protectionSpace)
        switch answer {
        case .cancel:
            prompts.challenges.noteRefusal(of: program, at: site, now: clock.now)
            noteCancel(of: question)
        case .credential: prompts.challenges.noteAnswer(to: program, at: site)
        case .proceed, .useDefault, .reject: break
        }
    }

    func noteConsent(_ consent: Consent, to request: ConsentRequest, of program: String) {
        let site = PromptLimiter.Site(request.space)
        if consent == .no {
            prompts.consents.noteRefusal(of: program, at: site, now: clock.now)
        } else {
            prompts.consents.noteAnswer(to: program, at: site)
        }
    }

    /// An agent has cancelled: that counts for all for whom agents are asked the same, whether or not they share a login.
    func noteCancel(of question: OpenQuestion) {
        prompts.cancels.note(question.challenge, now: clock.now)
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
