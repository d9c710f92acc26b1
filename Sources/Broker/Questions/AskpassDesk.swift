internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Shows the prompts of programs that log in by themselves (`prompt/ask`) at agents. Owns the open prompts; `QuestionDesk`
/// owns the queues and requests of the agents, because an agent's `maxPending` counts both.
///
/// No stored credential is used, and an answer is stored nowhere: it passes from the agent's reply to the reply of the call.
final class AskpassDesk {
    private let context: DeskContext
    private let audit: AuditRecorder
    private let clients: ClientRegistry
    private let questions: QuestionDesk
    private let reference: DeskReference<AskpassDesk>
    private(set) var open: [String: OpenPrompt] = [:]
    private var lastNumber = 0

    init(_ questions: QuestionDesk, _ reference: DeskReference<AskpassDesk>) {
        (context, audit, clients) = (questions.context, questions.audit, questions.clients)
        (self.questions, self.reference) = (questions, reference)
    }

    /// `prompt/ask`: the call is answered when an agent has answered, or when no agent will.
    func ask(_ prompt: ProgramPrompt, _ call: Call<PromptAsk>, from client: ClientConnection) throws(RPCError) {
        let program = client.peer.subject.text
        guard let agent = clients.prompter(for: client.peer.pid, after: []) else { throw .noAgentForPrompt }
        try checkRoom(for: prompt, of: client)
        try checkProgram(program, prompt, client.cause)
        lastNumber += 1
        let id = RandomText.make128Bits()
        open[id] = OpenPrompt(
            id: id, number: lastNumber, prompt: prompt, call: call, program: program, cause: client.cause,
            requester: client.requester, pid: client.peer.pid,
            usage: FetchUsage(in: client.quotas, bytes: prompt.text.utf8.count), agent: agent.id)
        put(id, to: agent)
    }

    /// A prompt counts as an unanswered fetch, and as an open challenge.
    private func checkRoom(for prompt: ProgramPrompt, of client: ClientConnection) throws(RPCError) {
        try clients.checkRoom(for: prompt.text.utf8.count, of: client)
        guard all({ $0.call.connection == client.id }).count < Limits.openChallenges else {
            let text = "too many open prompts on this connection (limit \(Limits.openChallenges)); wait for answers"
            throw RPCError(.busy, text)
        }
    }

    /// Throws if the program may not prompt now, because of a person's earlier answers (SECURITY-RULES X5).
    private func checkProgram(_ program: ExactText, _ prompt: ProgramPrompt, _ cause: Cause) throws(RPCError) {
        guard !questions.prompts.isStopped(program) else {  // guard: stopped-programs-show-no-prompt
            questions.prompts.recordUnasked(program)
            throw .promptsAreStopped
        }
        // guard: prompts-of-programs-have-to-wait
        guard let wait = questions.prompts.wait(of: program, before: prompt) else { return }
        audit.recordDenial(.busy, cause)
        let seconds = Int(wait.components.seconds) + 1
        throw RPCError(
            .busy, "earlier prompts of this program were cancelled; it may cause another one in \(seconds) s")
    }

    // MARK: Delivery

    private func put(_ id: String, to agent: ClientConnection) {
        let queue = questions.asked(agent.id).queue
        if queue.admits(delivered: questions.deliveredCount(at: agent.id), limit: agent.maxPending) {
            return deliver(id, to: agent)
        }
        questions.asked(agent.id).queue.append(id)
        setDeadline(Limits.leaseWait, of: id)
    }

    /// Delivers a prompt that was queued. Meanwhile, a person may have cancelled or stopped prompts of its program.
    func deliverQueued(_ id: String, to agent: ClientConnection) {
        guard let prompt = open[id] else { return }
        do throws(RPCError) {
            try checkProgram(prompt.program, prompt.prompt, prompt.cause)
            deliver(id, to: agent)
        } catch {
            finish(prompt, .failure(error))
        }
    }

    private func deliver(_ id: String, to agent: ClientConnection) {
        guard let prompt = open[id] else { return }
        let params = AuthPromptParams(
            promptID: id, prompt: prompt.prompt, requester: prompt.requester,
            deadlineMs: context.options.challengeDeadline.wholeMilliseconds)
        let request = agent.request(.authPrompt, params.json)
        questions.asked(agent.id).requests[request] = id
        open[id]?.request = request
        setDeadline(context.options.challengeDeadline, of: id)
        context.log.info("prompt opened", metadata: ["pid": "\(prompt.pid)", "kind": "\(prompt.prompt.kind.rawValue)"])
        audit.recordPrompt(.promptAsked, prompt, agent)
    }

    private func setDeadline(_ limit: Duration, of id: String) {
        open[id]?.deadline = reference.after(limit) { $0.advance(id, because: .deadline) }
    }

    // MARK: Answers

    /// Handles an agent's reply. After an error or an invalid reply, the next agent is asked.
    func receive(_ reply: ConnectionMachine.Reply, _ id: String, from agent: ClientConnection) {
        guard let prompt = open[id] else { return }
        guard case .result(let json) = reply, let answer = try? PromptReply(json, to: prompt.prompt.kind) else {
            context.log.warning("an agent failed to answer a prompt", metadata: ["prompt": "\(id)"])
            return advance(id, because: .failed)
        }
        close(prompt)
        audit.recordPrompt(.promptAnswered, prompt, agent) { $0.action = answer.action.rawValue }
        questions.prompts.record(answer.action, to: prompt.prompt, of: prompt.program)
        if answer.stopsAsking { questions.stopAsking(for: prompt.program, at: agent, answered: id) }
        let result = answer.answer(to: prompt.prompt.kind)
        clients.complete(
            prompt.call,
            result.map { .success($0) } ?? .failure(RPCError(.challengeCancelled, "the prompt was cancelled")))
    }

    /// Passes a prompt to the next agent. Without one, the call fails.
    private func advance(_ id: String, because reason: NoAnswer) {
        guard var prompt = open[id] else { return }
        audit.recordPrompt(.promptAnswered, prompt, clients[prompt.agent]) { $0.reason = reason.rawValue }
        prompt.passedOn.insert(prompt.agent)
        guard let next = clients.prompter(for: prompt.pid, after: prompt.passedOn) else {
            let error = reason == .deadline ? RPCError.promptTimedOut : .noAgentForPrompt
            return finish(prompt, .failure(error))
        }
        recall(prompt)
        (prompt.agent, prompt.request) = (next.id, nil)
        open[id] = prompt
        put(id, to: next)
    }

    // MARK: Withdrawal

    /// Fails all prompts of a program, because a person has stopped them.
    func stop(_ program: ExactText) {
        for prompt in all({ $0.program == program }) {
            questions.prompts.recordUnasked(program)
            finish(prompt, .failure(.promptsAreStopped))
        }
    }

    /// `$/cancelRequest` of the program.
    func cancel(_ call: CallID, of client: ClientConnection) {
        for prompt in all({ $0.call.id == call && $0.call.connection == client.id }) { cancel(prompt) }
    }

    /// Passes the prompts at a connection that is not an agent any more to other agents.
    func leave(_ agent: ClientConnection, because reason: NoAnswer) {
        for prompt in all({ $0.agent == agent.id }) { advance(prompt.id, because: reason) }
    }

    /// Removes a closed connection: withdraws its prompts, and passes the prompts that it had as an agent to others.
    func forget(_ connection: ClientConnection) {
        for prompt in all({ $0.call.connection == connection.id }) { cancel(prompt) }
        leave(connection, because: .disconnected)
    }

    /// Fails all prompts, because the broker is exiting.
    func shutDown() {
        for prompt in all({ _ in true }) {
            finish(prompt, .failure(RPCError(.shuttingDown, "the broker is shutting down; try again in a moment")))
        }
    }

    private func cancel(_ prompt: OpenPrompt) {
        audit.recordPrompt(.promptAnswered, prompt, clients[prompt.agent]) { $0.reason = NoAnswer.cancelled.rawValue }
        finish(prompt, .failure(RPCError(.cancelled, "the prompt was cancelled")))
    }

    private func finish(_ prompt: OpenPrompt, _ result: Result<PromptAnswer, RPCError>) {
        close(prompt)
        clients.complete(prompt.call, result)
    }

    private func close(_ prompt: OpenPrompt) {
        open[prompt.id] = nil
        recall(prompt)
    }

    /// Withdraws a prompt from its agent, which has room for another question then.
    private func recall(_ prompt: OpenPrompt) {
        prompt.deadline?.cancel()
        let respondent = questions.asked(prompt.agent)
        respondent.queue.remove(prompt.id)
        if let request = prompt.request, respondent.requests.removeValue(forKey: request) != nil {
            clients[prompt.agent]?.withdraw(request: request)
        }
        questions.scheduleDelivery(at: prompt.agent)
    }

    /// Returns the open prompts that match, in the order of their calls.
    private func all(_ matches: (OpenPrompt) -> Bool) -> [OpenPrompt] {
        open.values.filter(matches).sorted { $0.number < $1.number }
    }
}

/// An unanswered prompt of a program, at an agent.
struct OpenPrompt {
    let id: String
    /// The position among all prompts.
    let number: Int
    let prompt: ProgramPrompt
    let call: Call<PromptAsk>
    /// The client's program, as in `Subject.text`.
    let program: ExactText
    let cause: Cause
    let requester: Requester
    let pid: Int32
    let usage: FetchUsage
    var agent: ConnectionID
    /// The number of the request to the agent; `nil` while the prompt is queued.
    var request: Int?
    var deadline: DeadlineTimer?
    /// The agents that have not answered.
    var passedOn: Set<ConnectionID> = []
}

extension RPCError {
    fileprivate static let noAgentForPrompt = RPCError(
        .noAgent,
        "no agent can show the prompt; start watchword-agent in the desktop session, or watchword agent in a terminal")
    fileprivate static let promptTimedOut = RPCError(
        .challengeTimedOut, "timed out waiting for an answer to the prompt")
    fileprivate static let promptsAreStopped = RPCError(
        .denied, "prompts of this program are stopped; to allow them again, run: watchword prompts resume")
}
