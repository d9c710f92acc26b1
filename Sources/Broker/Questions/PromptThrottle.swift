internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Decides whether a program may cause another prompt, from the user's answers to earlier prompts. `QuestionDesk`
/// carries out the decisions.
final class PromptThrottle {
    private let context: DeskContext
    private let audit: AuditRecorder
    private var rules = PromptRules()

    init(_ context: DeskContext, _ audit: AuditRecorder) { (self.context, self.audit) = (context, audit) }

    /// Whether the user has stopped all prompts for this program.
    func isStopped(_ program: ExactText) -> Bool { rules.stopped.contains(program) }

    /// Whether the user has just cancelled the same challenge for another fetch.
    func isJustCancelled(_ challenge: Challenge, for program: ExactText) -> Bool {
        rules.cancels.covers(challenge, of: program, now: context.now)
    }

    /// Returns the time until the program may cause a prompt for this challenge; `nil` if it may do so now.
    func wait(of program: ExactText, before challenge: Challenge) -> Duration? {
        let site = PromptLimiter.Site(challenge.protectionSpace)
        return [rules.challenges, rules.vain].compactMap { $0.wait(of: program, at: site, now: context.now) }.max()
    }

    /// Returns the time until the program may show another prompt of its own; `nil` if it may do so now.
    func wait(of program: ExactText, before prompt: ProgramPrompt) -> Duration? {
        rules.challenges.wait(of: program, at: PromptLimiter.Site(prompt), now: context.now)
    }

    /// Whether the user may be asked for consent. If not, the stored credential is not used.
    func mayConfirm(_ request: ConsentRequest, for program: ExactText) -> Bool {
        if rules.stopped.contains(program) {  // guard: stopped-programs-get-no-consent
            recordUnasked(program)
            return false
        }
        return rules.consents.wait(of: program, at: PromptLimiter.Site(request.space), now: context.now) == nil
    }

    /// Counts a prompt that was not shown because prompts for this program are stopped.
    func recordUnasked(_ program: ExactText) { rules.stopped.recordUnasked(program) }

    /// Records the user's answer to a challenge at an agent.
    func record(_ answer: ChallengeAnswer, to challenge: Challenge, of program: ExactText) {
        let site = PromptLimiter.Site(challenge.protectionSpace)
        switch answer {
        case .cancel:
            rules.challenges.recordRefusal(of: program, at: site, now: context.now)
            rules.cancels.record(challenge, now: context.now)
        case .credential: rules.challenges.recordAnswer(to: program, at: site)
        case .proceed, .useDefault, .reject: break
        }
    }

    /// Records what became of a login that the user has supplied for this program.
    /// - Parameter isAccepted: `false` if the server did not say whether the login is right.
    func recordLogin(at space: ProtectionSpace, isAccepted: Bool, of program: ExactText) {
        let site = PromptLimiter.Site(space)
        if isAccepted {
            rules.vain.recordAnswer(to: program, at: site)
        } else {
            rules.vain.recordRefusal(of: program, at: site, now: context.now)
        }
    }

    /// Records the user's answer to a prompt of a program. Closing an information is neither an answer nor a refusal.
    func record(_ action: PromptReply.Action, to prompt: ProgramPrompt, of program: ExactText) {
        let site = PromptLimiter.Site(prompt)
        switch action {
        case .cancel where prompt.kind == .information: break
        case .cancel: rules.challenges.recordRefusal(of: program, at: site, now: context.now)
        case .answer, .allow: rules.challenges.recordAnswer(to: program, at: site)
        }
    }

    /// Records the user's answer to a consent prompt.
    func record(_ consent: Consent, to request: ConsentRequest, of program: ExactText) {
        let site = PromptLimiter.Site(request.space)
        if consent == .no {
            rules.consents.recordRefusal(of: program, at: site, now: context.now)
        } else {
            rules.consents.recordAnswer(to: program, at: site)
        }
    }

    /// Stops all prompts for a program, after an answer with `stopAsking`.
    func stop(_ program: ExactText, _ cause: Cause) {
        let dropped = rules.stopped.stop(program, now: context.now)
        context.log.notice("prompts for a program are stopped", metadata: ["program": "\(program)"])
        audit.record(.promptsStopped, cause) { $0.subject = program.string }
        if let dropped { recordResumption(of: [dropped], .broker) }
    }

    /// The result of `prompt/list`.
    var list: [StoppedProgram] { rules.stopped.listing(now: context.now) }

    /// `prompt/resume`: allows prompts for stopped programs again, and returns these programs.
    func resume(_ subject: ExactText?, _ cause: Cause) -> [ExactText] {
        let programs = rules.resume(subject)
        context.log.notice("prompts are resumed", metadata: ["programs": "\(programs.count)"])
        recordResumption(of: programs, cause)
        return programs
    }

    private func recordResumption(of programs: [ExactText], _ cause: Cause) {
        for program in programs { audit.record(.promptsResumed, cause) { $0.subject = program.string } }
    }
}
