internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Programs for which a person wants to be asked nothing any more (`stopAsking` in the answer of an agent).
extension Router {
    /// The questions of this program are put to no agent from now on; those that are open are taken back.
    /// - Parameters:
    ///   - agent: at which a person has said so.
    ///   - answered: the challenge or confirmation that this was said to.
    func stopAsking(for program: String, at agent: ClientConnection, answered: String) {
        let dropped = prompts.stopped.stop(program, now: clock.now)
        log.notice("the questions of a program are stopped", metadata: ["program": "\(program)"])
        audit.record(.promptsStopped, agent.cause) { $0.subject = program }
        if let dropped { recordResumption(of: [dropped], .broker) }
        let open = questions.filter { id, question in
            guard id != answered, case .agent = question.place else { return false }
            return fetches[question.fetch]?.program == program
        }
        for (id, question) in open.sorted(by: { $0.value.fetch.number < $1.value.fetch.number }) {
            guard questions[id] != nil, let fetch = fetches[question.fetch] else { continue }
            takeBack(id, question, because: .cancelled)
            _ = close(id)
            announceResolution(id, question, action: nil, by: "agent")
            leaveUnasked(question.challenge, of: fetch)
        }
        for (id, open) in confirmations where id != answered && fetches[open.fetch]?.program == program {
            prompts.stopped.noteUnasked(program)
            settleConfirmation(id, nil, by: "nobody")
        }
    }

    /// The fetch continues as though there were no agent.
    func leaveUnasked(_ challenge: Challenge, of fetch: RunningFetch) {
        prompts.stopped.noteUnasked(fetch.program)
        audit.recordSilence(Unanswered.NoRespondent.stopped.rawValue, after: challenge, for: fetch)
        perform(table.notAsked(fetch.id, because: .stopped, environment))
    }

    /// `prompt/list`.
    func listStoppedPrograms() -> JSON {
        ["stopped": .array(prompts.stopped.listing(now: clock.now).map(\.json))]
    }

    /// `prompt/resume`.
    func resumePrompts(_ params: PromptResumeParams, _ cause: Cause) -> JSON {
        let programs = prompts.resume(params.subject)
        if !programs.isEmpty { table.forgetSilences() }
        log.notice("the questions of programs are put again", metadata: ["programs": "\(programs.count)"])
        recordResumption(of: programs, cause)
        return ["resumed": .integer(programs.count)]
    }

    private func recordResumption(of programs: [String], _ cause: Cause) {
        for program in programs { audit.record(.promptsResumed, cause) { $0.subject = program } }
    }
}
