internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The desk that knows what people have said to prompts, and whether a program may cause another one. It decides and records;
/// the desk of questions acts.
final class PromptDesk {
    private let context: DeskContext
    private let audit: AuditRecorder
    private var rules = PromptRules()

    init(_ context: DeskContext, _ audit: AuditRecorder) { (self.context, self.audit) = (context, audit) }

    /// Whether a person wants to be asked nothing for this program.
    func isStopped(_ program: ExactText) -> Bool { rules.stopped.contains(program) }

    func isJustCancelled(_ challenge: Challenge, for program: ExactText) -> Bool {
        rules.cancels.covers(challenge, of: program, now: context.now)
    }

    /// How long the program has to wait before it may ask; `nil` where it may.
    func wait(of program: ExactText, before challenge: Challenge) -> Duration? {
        rules.challenges.wait(of: program, at: PromptLimiter.Site(challenge.protectionSpace), now: context.now)
    }

    /// Whether consent may be asked for; without a question no stored credential is used.
    func mayConfirm(_ request: ConsentRequest, for program: ExactText) -> Bool {
        if rules.stopped.contains(program) {
            noteUnasked(program)
            return false
        }
        return rules.consents.wait(of: program, at: PromptLimiter.Site(request.space), now: context.now) == nil
    }

    /// The person was not asked, as it is to be.
    func noteUnasked(_ program: ExactText) { rules.stopped.noteUnasked(program) }

    /// A person has answered at an agent.
    func note(_ answer: ChallengeAnswer, to challenge: Challenge, of program: ExactText) {
        let site = PromptLimiter.Site(challenge.protectionSpace)
        switch answer {
        case .cancel:
            rules.challenges.noteRefusal(of: program, at: site, now: context.now)
            rules.cancels.note(challenge, now: context.now)
        case .credential: rules.challenges.noteAnswer(to: program, at: site)
        case .proceed, .useDefault, .reject: break
        }
    }

    func note(_ consent: Consent, to request: ConsentRequest, of program: ExactText) {
        let site = PromptLimiter.Site(request.space)
        if consent == .no {
            rules.consents.noteRefusal(of: program, at: site, now: context.now)
        } else {
            rules.consents.noteAnswer(to: program, at: site)
        }
    }

    /// `stopAsking` in the answer of an agent.
    func stop(_ program: ExactText, _ cause: Cause) {
        let dropped = rules.stopped.stop(program, now: context.now)
        context.log.notice("the questions of a program are stopped", metadata: ["program": "\(program)"])
        audit.record(.promptsStopped, cause) { $0.subject = program.string }
        if let dropped { recordResumption(of: [dropped], .broker) }
    }

    /// `prompt/list`.
    var list: JSON { ["stopped": .array(rules.stopped.listing(now: context.now).map(\.json))] }

    /// `prompt/resume`. Returns the programs about which people are asked again.
    func resume(_ subject: ExactText?, _ cause: Cause) -> [ExactText] {
        let programs = rules.resume(subject)
        context.log.notice("the questions of programs are put again", metadata: ["programs": "\(programs.count)"])
        recordResumption(of: programs, cause)
        return programs
    }

    private func recordResumption(of programs: [ExactText], _ cause: Cause) {
        for program in programs { audit.record(.promptsResumed, cause) { $0.subject = program.string } }
    }
}
