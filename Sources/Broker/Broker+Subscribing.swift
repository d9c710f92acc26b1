internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Who wants to be asked: clients about their own fetches, agents about those of others.
extension Router {
    func subscribe(_ params: AuthSubscribeParams, _ connection: ClientConnection) -> JSON {
        connection.subscription = params.subscription(after: connection.subscription?.delivery)
        noteRoom(at: connection)
        return [:]
    }

    /// Fetches that were started before go on without asking here.
    func unsubscribe(_ connection: ClientConnection) -> JSON {
        connection.subscription = nil
        settleQuestions(of: connection, because: .unregistered) { question in
            if case .client = question.place { !question.challenge.isForHandler } else { false }
        }
        noteRoom(at: connection)
        settleConsultations(of: connection)
        return [:]
    }

    /// What it was asked is asked elsewhere.
    func unregisterAgent(_ connection: ClientConnection) throws -> JSON {
        guard let agent = connection.agent else { throw RPCError(.invalidRequest, "this connection is no agent") }
        connection.agent = nil
        log.notice("agent unregistered", metadata: ["agent": "a\(agent.number)"])
        settleQuestions(of: connection, because: .unregistered) { question in
            if case .agent = question.place { true } else { false }
        }
        settleConfirmations(of: connection)
        noteRoom(at: connection)
        return [:]
    }

    /// `auth/listPending`: what this connection was asked, and what waits for the second half of a fetch of this user; where
    /// programs are kept apart, of this program.
    func listPending(_ connection: ClientConnection) -> JSON {
        let isApart = options.sharing != .user
        let own = parked.values.filter { $0.isFor(connection) && (!isApart || $0.isOfProgram(of: connection)) }
        let halves = own.map(\.params)
        let all = connection.challenges.all + halves.sorted { $0.challengeID < $1.challengeID }
        return ["challenges": .array(all.map(\.json))]
    }
}
