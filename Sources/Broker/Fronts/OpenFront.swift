internal import WatchwordCore
internal import WatchwordProtocol

/// A front that accepts connections: what it admits, and how its requests become fetches.
final class OpenFront {
    let id: FrontID
    let address: FrontAddress
    /// The client that opened the front, and gets its restricted requests recorded; `nil` for one of the configuration.
    let opener: ClientConnection?
    let access: FrontAccess
    private let site: (site: FrontSite, url: FetchURL)?
    /// The name of its own, with the port, by which browsers reach the front of a site; `nil` at a Unix socket, where each program
    /// has its own cookies.
    let name: ExactText?
    private let fields: FrontFields
    private var budget: FrontBudget?
    private(set) var requests = 0
    var connections = 0

    /// A forward proxy.
    init(
        proxy id: FrontID, at address: FrontAddress, _ access: FrontAccess, opener: ClientConnection?
    ) {
        (self.id, self.address, self.access, self.opener) = (id, address, access, opener)
        (site, name, fields) = (nil, nil, FrontFields(key: RandomText.make128Bits()))
    }

    /// A front of one site.
    /// - Throws: `FetchFailure` of kind `badURL`.
    init(
        site: FrontSite, _ id: FrontID, at address: FrontAddress, opener: ClientConnection?
    ) throws(FetchFailure) {
        let url = try FrontSite.checked(site.url)
        (self.id, self.address, self.opener, self.site) = (id, address, opener, (site, url))
        let local = FrontSite.localName(for: url.origin)
        name = address.port.map { "\(local):\($0)" }
        access = FrontAccess(.site(names: Self.names(of: address, url) + [name].compactMap { $0 }))
        fields = FrontFields(key: RandomText.make128Bits())
        budget = FrontBudget(site)
    }

    /// The values of `Host` by which programs reach the front of a site. No web page can reach a Unix socket, so the
    /// name of the site is accepted there, too.
    private static func names(of address: FrontAddress, _ url: FetchURL) -> [ExactText] {
        switch address {
        case .ipv4(let port): ["127.0.0.1:\(port)", "localhost:\(port)"]
        case .ipv6(let port): ["[::1]:\(port)", "localhost:\(port)"]
        case .socket: ["localhost", url.origin.host, "\(url.origin.host):\(url.origin.port)"]
        }
    }

    var description: FrontDescription {
        var description = FrontDescription(
            id: id.text, address: address, site: site?.site.url, pid: opener.map { Int($0.peer.pid) })
        (description.name, description.connections, description.requests) = (name?.string, connections, requests)
        return description
    }

    /// Whether each request is recorded in the audit log, and the opener answers for its programs.
    var isRestricted: Bool { site?.site.isRestricted ?? false }

    /// The subject of the programs, if they need a consent of their own.
    var subject: Subject? {
        guard let (site, url) = site, site.isRestricted, site.asksConsent else { return nil }
        return Subject(.front, ExactText(url.origin.text), isSandboxed: true)
    }

    /// Returns the fetch that answers a request.
    /// - Throws: `FrontRefusal` if the request is not allowed.
    func exchange(
        for request: FrontRequest, _ body: FrontBody, isDescendant: Bool
    ) throws(FrontRefusal) -> FrontExchange {
        requests += 1
        switch access.verdict(request, isDescendant: isDescendant) {
        case .refused(let refusal): throw refusal
        case .allowed(let usesCredentials):
            switch request.target {
            case .authority(let host, let port):
                return FrontExchange(tunnelTo: host, port: port, usesCredentials: usesCredentials)
            case .absolute(let url) where site == nil:
                return FrontExchange(
                    request, url: url, headers: try fields.request(request), body: body,
                    usesCredentials: usesCredentials)
            case .absolute(let url): return try exchange(for: request, url.requestTarget, body, usesCredentials)
            case .origin(let path): return try exchange(for: request, path, body, usesCredentials)
            }
        }
    }

    private func exchange(
        for request: FrontRequest, _ path: String, _ body: FrontBody, _ usesCredentials: Bool
    ) throws(FrontRefusal) -> FrontExchange {
        guard let (site, url) = site else { throw .notForProxy }
        guard site.allows(method: request.method, path: path) else { throw .requestNotAllowed(request.method) }
        if let name, !isNamed(request), request.isNavigation { throw .elsewhere("http://\(name)\(path)") }
        try budget?.take()
        let mapping = try mapping(of: url, request)
        let request = site.restricted(request)
        let headers = mapping.request(site.passedOn(try fields.request(request)))
        return FrontExchange(
            request, url: try site.url(of: path, url.origin), headers: headers, body: body,
            usesCredentials: usesCredentials)
    }

    private func mapping(of url: FetchURL, _ request: FrontRequest) throws(FrontRefusal) -> SiteMapping {
        do throws(FetchFailure) {
            return try SiteMapping(
                site: url, front: request.authority ?? "", passesCookies: name == nil || isNamed(request))
        } catch {
            throw .wrongName
        }
    }

    private func isNamed(_ request: FrontRequest) -> Bool {
        request.authority == name
    }

    /// Returns the origin to which a request leads, for the audit log; `nil` if it names none.
    func origin(of request: FrontRequest) -> String? {
        switch request.target {
        case .absolute(let url) where !access.isNamed(by: request): url.origin.text
        case .authority(let host, let port): "https://\(host):\(port)"
        case .absolute, .origin: site?.url.origin.text
        }
    }

    /// Returns the fields of the response to the program.
    func responseFields(
        _ response: TransferResponse, to request: FrontRequest, at sinceEpoch: Duration
    ) throws(FrontRefusal) -> [HeaderField] {
        let headers = try fields.response(
            status: response.status, response.headers, to: request, at: sinceEpoch)
        guard let url = site?.url else { return headers }
        return try mapping(of: url, request).response(headers)
    }
}

extension FrontID {
    /// The identifier in messages.
    var text: String { "w\(value)" }
}

extension FrontSite {
    /// Returns the URL of a site, which has no path.
    static func checked(_ text: String) throws(FetchFailure) -> FetchURL {
        let url = try FetchURL(text)
        guard url.requestTarget == "/" else {
            throw FetchFailure(.badURL, "the URL of a site has no path and no query; write \(url.origin.text)")
        }
        return url
    }
}

/// A request to a front that is being answered. Used on the broker's executor only.
final class FrontAnswer {
    let connection: ConnectionID
    let front: FrontID
    let link: any FrontLink
    let request: FrontRequest
    /// The fetch, until it has ended.
    var fetch: FetchID?
    /// The response whose body is being sent.
    var response: FrontResponse?
    /// The open body of the response.
    var body: OpenBody?
    /// Whether a read of the body is pending.
    var isReading = false
    /// Why the request cannot be answered, found while its body was received.
    var refusal: FrontRefusal?
    var proofs: [ResponseProof] = []
    /// The source of the bytes that the program sends in another protocol.
    var source: BodySourceID?
    /// The usage of the quota for open bodies.
    var share: Quota.Share?

    init(_ request: FrontRequest, _ link: any FrontLink, on connection: ConnectionID, at front: FrontID) {
        (self.request, self.link, self.connection, self.front) = (request, link, connection, front)
    }
}
