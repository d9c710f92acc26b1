internal import Logging
internal import WatchwordCore

/// All desks of one broker. They are no actors and cannot be sent: they live on the broker's executor, and nowhere else.
final class Desks {
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let session: SessionKeeper
    let fetches: FetchRouter
    let methods: FetchMethods
    let bodies: BodyDesk
    let questions: QuestionDesk
    let keyring: KeyringDesk
    let credentials: CredentialDesk
    let progress: ProgressReporter

    init(
        _ ports: BrokerPorts, _ context: DeskContext, _ table: FetchTable, suspendedBefore: Duration, of broker: Broker
    ) {
        func way<Desk>(_ desk: @escaping @Sendable (isolated Broker) -> Desk) -> WayBack<Desk> {
            WayBack(broker: broker, clock: ports.clock, desk: desk)
        }
        self.context = context
        audit = AuditRecorder(ports.audit, ports.clock)
        clients = ClientRegistry(context, audit, way { $0.desks.clients })
        fetches = FetchRouter(table, ports, context, audit, clients, way { $0.desks.fetches })
        session = SessionKeeper(fetches, suspendedBefore: suspendedBefore, way { $0.desks.session })
        bodies = BodyDesk(fetches, way { $0.desks.bodies })
        questions = QuestionDesk(fetches, bodies, way { $0.desks.questions })
        keyring = KeyringDesk(fetches, way { $0.desks.keyring })
        credentials = CredentialDesk(fetches, keyring, way { $0.desks.credentials })
        fetches.desks = FetchRouter.Desks(session: session, bodies: bodies, questions: questions, keyring: keyring)
        progress = ProgressReporter(fetches, bodies, way { $0.desks.progress })
        methods = FetchMethods(fetches, progress)
    }
}

/// The time, the log and the settings, which every desk may use.
final class DeskContext {
    let clock: any BrokerClock
    let log: Logger
    /// Changed by `Broker.reconfigure` only.
    var options: BrokerOptions
    /// The service ends: new requests are refused.
    var isClosing = false

    init(_ clock: any BrokerClock, _ options: BrokerOptions, _ log: Logger) {
        (self.clock, self.options, self.log) = (clock, options, log)
    }

    var now: Duration { clock.now }
}
