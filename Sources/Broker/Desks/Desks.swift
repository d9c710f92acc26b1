internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// All desks of one broker. A desk is a class that owns one part of the broker's state, such as the questions or the
/// bodies. Desks are neither actors nor `Sendable`, and are used only on the broker's executor.
final class Desks {
    let context: DeskContext
    let audit: AuditRecorder
    let clients: ClientRegistry
    let session: SessionDesk
    let fetches: FetchRouter
    let methods: FetchMethods
    let bodies: BodyDesk
    let questions: QuestionDesk
    let programPrompts: AskpassDesk
    let keyring: KeyringDesk
    let credentials: CredentialDesk
    let progress: ProgressReporter
    let fronts: FrontDesk
    let upstreams: UpstreamDesk
    let tokens: TokenDesk

    init(
        _ ports: BrokerPorts, _ context: DeskContext, _ table: FetchTable, suspendedBefore: Duration, of broker: Broker
    ) {
        func reference<Desk>(_ desk: @escaping @Sendable (isolated Broker) -> Desk) -> DeskReference<Desk> {
            DeskReference(broker: broker, clock: ports.clock, desk: desk)
        }
        self.context = context
        audit = AuditRecorder(ports.audit, ports.clock)
        clients = ClientRegistry(context, audit, reference { $0.desks.clients })
        fetches = FetchRouter(table, ports, context, audit, clients, reference { $0.desks.fetches })
        session = SessionDesk(fetches, suspendedBefore: suspendedBefore, reference { $0.desks.session })
        bodies = BodyDesk(fetches, reference { $0.desks.bodies })
        questions = QuestionDesk(fetches, bodies, reference { $0.desks.questions })
        programPrompts = AskpassDesk(questions, reference { $0.desks.programPrompts })
        keyring = KeyringDesk(fetches, reference { $0.desks.keyring })
        credentials = CredentialDesk(fetches, keyring, reference { $0.desks.credentials })
        upstreams = UpstreamDesk(fetches, ports.upstreams, reference { $0.desks.upstreams })
        fetches.desks = FetchRouter.OrderDesks(
            session: session, bodies: bodies, questions: questions, programPrompts: programPrompts, keyring: keyring,
            upstreams: upstreams)
        progress = ProgressReporter(fetches, bodies, reference { $0.desks.progress })
        methods = FetchMethods(fetches, progress)
        fronts = FrontDesk(fetches, methods, reference { $0.desks.fronts })
        fetches.desks.fronts = fronts
        tokens = TokenDesk(fetches, methods, fronts, keyring, reference { $0.desks.tokens })
        fetches.desks.tokens = tokens
    }
}

/// The clock, the log and the settings, shared by all desks.
final class DeskContext {
    let clock: any BrokerClock
    let log: Logger
    /// Changed only by `Broker.reconfigure`.
    var options: BrokerOptions { didSet { rules = Self.rules(of: options, own) } }
    private let own: OwnPorts?
    /// Those of `options`, with the broker's own ports, which all fetches share.
    private(set) var rules: Boxed<FetchRules>
    /// Whether the broker is shutting down and refuses new requests.
    var isClosing = false

    /// - Parameter own: the ports at which the broker itself listens; `nil` without fronts.
    init(_ clock: any BrokerClock, _ options: BrokerOptions, own: OwnPorts?, _ log: Logger) {
        (self.clock, self.options, self.own, self.log) = (clock, options, own, log)
        rules = Self.rules(of: options, own)
    }

    private static func rules(of options: BrokerOptions, _ own: OwnPorts?) -> Boxed<FetchRules> {
        var rules = options.rules
        rules.hosts.own = own
        return Boxed(rules)
    }

    var now: Duration { clock.now }

    /// Returns the time for the answer to a challenge, or another question. A login in a browser takes as long as its server
    /// allows.
    func challengeDeadline(_ challenge: Challenge?) -> Duration {
        let usual = options.challengeDeadline
        guard let login = challenge?.login else { return usual }
        return max(usual, login.expiresAt - clock.sinceEpoch)
    }
}
