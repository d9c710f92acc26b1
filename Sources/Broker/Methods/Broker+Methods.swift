internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

extension Broker {
    func handle(_ event: ConnectionMachine.Event, from connection: ClientConnection) {
        switch event {
        case .call(let call, let method, let params):
            dispatch(call, method, params, from: connection)
        case .notification(let method, _):
            desks.context.log.debug("unknown notification", metadata: ["method": "\(method.shortened)"])
        case .cancel(let call):
            let fetches = desks.fetches
            let fetch = connection.fetches.lazy.compactMap { fetches[$0] }.first { $0.owner?.call?.id == call }
            if let fetch { fetches.cancel(fetch) }
            desks.programPrompts.cancel(call, of: connection)
        case .reply(let request, let reply):
            desks.questions.receive(reply, to: request, from: connection)
        case .send(let bytes):
            connection.send(bytes)
        case .close:
            connection.close()
        }
    }

    private func dispatch(_ call: CallID, _ method: String, _ params: JSON?, from connection: ClientConnection) {
        do {
            guard !desks.context.isClosing else {
                throw RPCError(.shuttingDown, "the broker is shutting down; connect again in a moment")
            }
            guard let known = MethodTable.all[method] else {
                let text =
                    method == BrokerMethodName.cancelRequest.rawValue
                    ? "$/cancelRequest is a notification; send it without an id"
                    : "unknown method \"\(method.shortened)\"; rpc.discover lists all methods"
                throw RPCError(.methodNotFound, text)
            }
            guard !connection.isConfined || known.method.access == .everyClient else {
                let place =
                    connection.peer.socketKind == .restricted
                    ? "on the restricted socket" : connection.peer.subject.confinement
                throw RPCError(
                    .denied, "\(method) is not available \(place); only fetches and answers to their challenges are")
            }
            if let result = try known.run(params, call, connection, desks) {
                connection.complete(call, .success(result))
            }
        } catch let error as RPCError {
            desks.audit.recordDenial(error, connection.cause)
            connection.complete(call, .failure(error))
        } catch let error as InvalidParams {
            connection.complete(call, .failure(RPCError(.invalidParams, error.detail)))
        } catch let error as FetchFailure {
            connection.complete(call, .failure(RPCError(error.kind, error.text)))
        } catch {
            desks.context.log.error("unexpected error", metadata: ["method": "\(method.shortened)"])
            connection.complete(call, .failure(RPCError(.internalError, "unexpected error in the broker; see its log")))
        }
    }
}

extension Subject {
    /// The kind of clients to which a method is not available, for an error message.
    fileprivate var confinement: String {
        kind == .unknown ? "to unidentified programs" : "to sandboxed programs"
    }
}
