internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Owns the fronts and the requests that their programs have sent. Each request becomes a fetch.
final class FrontDesk {
    /// A connection of a program.
    private final class Program {
        let link: any FrontLink
        let front: FrontID
        let isDescendant: Bool
        /// Whether the program has logged in by itself with a scheme that authenticates connections.
        var authorizesConnections = false
        /// The origins that have answered such a program. It relies on its login on these connections.
        var origins: Set<Origin> = []
        var answer: FrontAnswer?

        init(_ link: any FrontLink, _ front: FrontID, isDescendant: Bool) {
            (self.link, self.front, self.isDescendant) = (link, front, isDescendant)
        }
    }

    /// The maximum number of fronts that one client process may open.
    private static let frontsOfClient = 64

    private let port: (any FrontPort)?
    private let fetches: FetchRouter
    private let methods: FetchMethods
    private let sender: FrontSender
    private var fronts: [FrontID: OpenFront] = [:]
    /// The fronts at which a browser arrives at the end of a login, and the functions that answer it.
    private var logins: [FrontID: (FrontAnswer) -> Void] = [:]
    private var programs: [ConnectionID: Program] = [:]
    /// The fronts of the configuration that could not be opened.
    private var failed: [FrontDescription] = []

    init(_ fetches: FetchRouter, _ methods: FetchMethods, _ reference: DeskReference<FrontDesk>) {
        (port, self.fetches, self.methods) = (fetches.ports.fronts, fetches, methods)
        sender = FrontSender(fetches, reference)
    }

    private var context: DeskContext { fetches.context }
    private var audit: AuditRecorder { fetches.audit }

    // MARK: Fronts

    /// `front/open`.
    func open(_ params: FrontOpen, _ connection: ClientConnection) throws -> FrontOpen.Opened {
        let count = fronts.values.count { $0.opener?.program === connection.program }
        guard count < Self.frontsOfClient else {
            throw RPCError(.busy, "too many fronts of this client (limit \(Self.frontsOfClient)); close one first")
        }
        switch params.kind {
        case .site(let site):
            let front = try open(site, at: params.address, opener: connection)
            return FrontOpen.Opened(id: front.id.text, address: front.address, name: front.name?.string)
        case .proxy:
            let token = Array(RandomText.make128Bits().utf8).withUnsafeBytes { Secret(copying: $0) }
            let access = FrontAccess(.proxy(token: token), tunnelPorts: context.options.fronts.tunnelPorts)
            let front = try open(access, at: params.address, opener: connection)
            return FrontOpen.Opened(id: front.id.text, address: front.address, token: token)
        }
    }

    /// Opens the fronts of the configuration.
    func openConfigured() {
        let options = context.options.fronts
        if let address = options.proxy {
            let access = FrontAccess(
                .proxy(token: nil), allowedHosts: options.hosts, tunnelPorts: options.tunnelPorts)
            attempt(at: address, site: nil) { try open(access, at: address, opener: nil) }
        }
        for (address, site) in options.sites {
            attempt(at: address, site: site.url) { try open(site, at: address, opener: nil) }
        }
    }

    /// Opens a front. A failure is logged, because the other parts of the broker still work.
    private func attempt(at address: FrontAddress, site: String?, _ open: () throws -> OpenFront) {
        do {
            let front = try open()
            context.log.notice(
                "front opened", metadata: ["listen": "\(front.address.text)", "site": "\(site ?? "any")"])
        } catch {
            let text = (error as? RPCError)?.message ?? "\(error)"
            context.log.error("cannot open a front", metadata: ["listen": "\(address.text)", "reason": "\(text)"])
            var description = FrontDescription(id: "", address: address, site: site, pid: nil)
            description.problem = text
            failed.append(description)
        }
    }

    private func open(_ access: FrontAccess, at address: FrontAddress, opener: ClientConnection?) throws -> OpenFront {
        let (id, address) = try listen(at: address, opener)
        return add(OpenFront(proxy: id, at: address, access, opener: opener))
    }

    private func open(_ site: FrontSite, at address: FrontAddress, opener: ClientConnection?) throws -> OpenFront {
        try context.rules.hosts.check(FrontSite.checked(site.url).origin)
        let (id, address) = try listen(at: address, opener)
        return add(try OpenFront(site: site, id, at: address, opener: opener))
    }

    private var lastFront = 0

    private func listen(
        at address: FrontAddress, _ opener: ClientConnection?, isLocalhost: Bool = true
    ) throws -> (FrontID, FrontAddress) {
        guard let port else { throw RPCError(.notSupported, "this broker has no fronts") }
        lastFront += 1
        let id = FrontID(value: lastFront)
        do throws(FrontFailure) {
            return (id, try port.open(id, at: address, isLocalhost: isLocalhost, ancestor: opener?.peer.pid))
        } catch {
            throw RPCError(.notSupported, error.text)
        }
    }

    private func add(_ front: OpenFront) -> OpenFront {
        fronts[front.id] = front
        return front
    }

    /// `front/close`: closes a front of this client.
    func close(_ params: FrontClose, _ connection: ClientConnection) throws {
        guard let front = fronts.values.first(where: { $0.id.text == params.id && $0.opener === connection }) else {
            throw RPCError(
                .notSupported, "no front \"\(params.id.shortened)\" of this client; front/list lists all fronts")
        }
        close(front.id)
    }

    /// Closes the fronts of a client that has disconnected.
    func closeFronts(of connection: ClientConnection) {
        for front in fronts.values where front.opener === connection { close(front.id) }
    }

    private func close(_ id: FrontID) {
        fronts[id] = nil
        port?.close(id)
    }

    /// `front/list`.
    var list: [FrontDescription] { fronts.values.sorted { $0.id.value < $1.id.value }.map(\.description) + failed }

    // MARK: Logins

    /// Opens a front for the browser of a login.
    /// - Parameter visit: called for each request; `answer` answers it.
    /// - Returns: the front and its port.
    func openLogin(port: Int?, visit: @escaping (FrontAnswer) -> Void) throws -> (FrontID, port: Int) {
        let (id, address) = try listen(at: .ipv4(port: port ?? 0), nil, isLocalhost: false)
        guard case .ipv4(let port) = address else { throw RPCError(.notSupported, "no port for the login") }
        logins[id] = { [unowned self] answer in
            // Another name would belong to a page of another site.
            if answer.request.host == "127.0.0.1:\(port)" { visit(answer) } else { self.answer(answer, .notFound) }
        }
        return (id, port)
    }

    /// Answers a browser, and closes its connection.
    func answer(_ answer: FrontAnswer, _ page: BrowserPage) {
        let body = Array("<!DOCTYPE html><meta charset=utf-8><title>Watchword</title><p>\(page.text)".utf8)
        var headers = [
            HeaderField("Date", HTTPDate.text(context.clock.sinceEpoch)),
            HeaderField("Content-Type", "text/html; charset=utf-8"), HeaderField("Cache-Control", "no-store"),
            HeaderField("Referrer-Policy", "no-referrer"), HeaderField("X-Content-Type-Options", "nosniff"),
            HeaderField("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
        ]
        if case .redirect(let url) = page { headers.append(HeaderField("Location", url)) }
        let response = FrontResponse(
            status: page.status, headers: headers, length: body.count, to: answer.request, keepsAlive: false)
        answer.link.send(response.bytes + (response.framing == .none ? [] : body))
        finish(answer, keepsAlive: false)
    }

    func closeLogin(_ id: FrontID) {
        logins[id] = nil
        port?.close(id)
    }

    // MARK: Programs

    /// Admits a program; `nil` if the front is closed.
    func opened(_ link: any FrontLink, _ peer: FrontPeer, at id: FrontID) -> ConnectionID? {
        guard !context.isClosing, fronts[id] != nil || logins[id] != nil else { return nil }
        let front = fronts[id]
        var identity = peer.identity
        // The person who opened a restricted front has given it to the programs in its container.
        if let front, front.isRestricted, let opener = front.opener { identity = opener.peer }
        let subject = front?.subject ?? identity.subject
        if subject != identity.subject { (identity.subject, identity.process) = (subject, nil) }
        let connection = fetches.clients.open(link, peer: identity)
        programs[connection] = Program(link, id, isDescendant: peer.isDescendant)
        fronts[id]?.connections += 1
        return connection
    }

    func closed(_ connection: ClientConnection) {
        guard let program = programs.removeValue(forKey: connection.id) else { return }
        fronts[program.front]?.connections -= 1
        if let answer = program.answer { sender.drop(answer) }
    }

    func requested(_ request: FrontRequest, _ body: FrontBody, on connection: ClientConnection) {
        guard let program = programs[connection.id] else { return }
        let answer = FrontAnswer(request, program.link, on: connection.id, at: program.front)
        program.answer = answer
        if let login = logins[program.front] { return login(answer) }
        do {
            guard let front = fronts[program.front] else { throw FrontRefusal.closing }
            let exchange = try front.exchange(for: request, body, isDescendant: program.isDescendant)
            if !front.isRestricted, request.authorizesConnection || program.authorizesConnections {
                program.authorizesConnections = true
                exchange.program = connection.id.value
                exchange.needsOldConnection = exchange.url.map { program.origins.contains($0.origin) } ?? false
            }
            if front.isRestricted { record(request, of: connection, reason: nil) }
            let fetch = try methods.start(exchange, of: connection, answer)
            if let source = fetch.source, let socket = program.link.takeBody() {
                fetches.ports.transfers.attach(source, socket: socket)
            }
        } catch let refusal as FrontRefusal {
            record(request, of: connection, reason: refusal.reason)
            refuse(answer, refusal)
        } catch let failure as FetchFailure {
            refuse(answer, FrontRefusal(failure))
        } catch let error as RPCError {
            refuse(answer, FrontRefusal(FetchFailure(error.kind ?? .internalError, error.message)))
        } catch {
            refuse(answer, FrontRefusal(FetchFailure(.internalError, "unexpected error in the broker; see its log")))
        }
    }

    /// Records a refused request, or a request to a restricted front: its method, and the origin, but no path.
    private func record(_ request: FrontRequest, of connection: ClientConnection, reason: String?) {
        let front = programs[connection.id].flatMap { fronts[$0.front] }
        let origin = front?.origin(of: request)
        audit.record(.frontRequest, connection.cause) { event in
            event.action = request.method.shortened
            event.origin = origin
            event.reason = reason
        }
    }

    /// The rest of a request's body is malformed. Nothing can be said once the response has begun.
    func broken(_ refusal: FrontRefusal, on connection: ClientConnection) {
        guard let answer = programs[connection.id]?.answer else { return }
        record(answer.request, of: connection, reason: refusal.reason)
        guard let fetch = answer.fetch.flatMap({ fetches[$0] }) else { return answer.link.abandon() }
        answer.refusal = refusal
        fetches.cancel(fetch)
    }

    func drained(_ connection: ConnectionID) {
        if let answer = programs[connection]?.answer { sender.pump(answer) { finish(answer, keepsAlive: $0) } }
    }

    // MARK: Answers

    private func refuse(_ answer: FrontAnswer, _ refusal: FrontRefusal) {
        answer.link.send(refusal.bytes(to: answer.request.method, at: context.clock.sinceEpoch))
        finish(answer, keepsAlive: false)
    }

    private func finish(_ answer: FrontAnswer, keepsAlive: Bool) {
        programs[answer.connection]?.answer = nil
        sender.releaseSource(of: answer)
        answer.link.endResponse(keepsAlive: keepsAlive)
    }

    func failed(_ answer: FrontAnswer, _ failure: FetchFailure) {
        answer.fetch = nil
        // The program would take an answer for one on the connection on which it has logged in.
        if failure.kind == .connectionLost, programs[answer.connection]?.authorizesConnections == true {
            return finish(answer, keepsAlive: false)
        }
        refuse(answer, answer.refusal ?? FrontRefusal(failure))
    }

    func received(interim response: TransferResponse, _ answer: FrontAnswer) {
        // A program of HTTP/1.0 does not know them (RFC 9110 section 15.2).
        guard answer.request.minorVersion == 1, !answer.request.isConnect, let front = fronts[answer.front],
            let headers = try? front.responseFields(response, to: answer.request, at: context.clock.sinceEpoch)
        else { return }
        answer.link.send(
            FrontResponse(
                status: response.status, reason: response.reason, headers: headers, length: nil, to: answer.request
            ).bytes)
    }

    func received(_ answer: FrontAnswer, _ fetched: FetchResponse, _ openBody: OpenBody?) {
        answer.fetch = nil
        answer.proofs = fetched.proofs
        if answer.request.isConnect, fetched.response.status == 200 { return openTunnel(answer, openBody) }
        var endsLogin = false
        if let program = programs[answer.connection], program.authorizesConnections {
            program.origins.insert(fetched.url.origin)
            endsLogin = fetched.response.endsConnection
        }
        do throws(FrontRefusal) {
            if fetched.response.status == 407, fetched.response.isFromProxy {
                throw .upstreamLogin(fetched.unanswered, hasAgent: fetches.clients.hasAgent)
            }
            guard let front = fronts[answer.front] else { throw .closing }
            let headers = try front.responseFields(
                fetched.response, to: answer.request, at: context.clock.sinceEpoch)
            sender.begin(answer, fetched.response, headers, openBody, keepsAlive: !endsLogin) {
                finish(answer, keepsAlive: $0)
            }
        } catch {
            if let openBody { fetches.ports.transfers.cancel(openBody.transfer) }
            refuse(answer, error)
        }
    }

    private func openTunnel(_ answer: FrontAnswer, _ openBody: OpenBody?) {
        guard let socket = openBody.flatMap({ fetches.ports.transfers.takeTunnel($0.transfer) }) else {
            return refuse(answer, FrontRefusal(FetchFailure(.internalError, "the tunnel has no socket; try again")))
        }
        programs[answer.connection]?.answer = nil
        answer.link.send(FrontResponse(status: 200, headers: [], length: nil, to: answer.request).bytes)
        answer.link.openTunnel(to: socket)
    }

    /// A part of an open body has been read, or reading has failed.
    func hasRead(_ body: TransferID, _ result: Result<BodyPart, TransferFailure>, on connection: ConnectionID) {
        guard let answer = programs[connection]?.answer, answer.body?.transfer == body else { return }
        sender.receive(result, for: answer) { finish(answer, keepsAlive: $0) }
    }

    /// An open body has ended. A pending read reports the end itself.
    func bodyEnded(_ body: TransferID, _ delivery: TransferPort.Delivery, on connection: ConnectionID) {
        guard let answer = programs[connection]?.answer, answer.body?.transfer == body, !answer.isReading,
            case .failure(let failure) = delivery
        else { return }
        hasRead(body, .failure(failure), on: connection)
    }
}

extension FrontRefusal {
    fileprivate static let closing = FrontRefusal(503, "closing", "this front is closing; open it again")
}
