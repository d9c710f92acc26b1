internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// The connections of one transfer: their allowed addresses, and the results of their TLS handshakes.
struct ConnectionRecord {
    let certificate: LoadedCertificate?
    private(set) var gate: ConnectionGate
    /// `nil` before a TLS handshake with the origin starts, and on a connection without TLS.
    private(set) var origin: TLSRecord?
    private(set) var proxy: TLSRecord?
    /// See `TransferResponse.serverEndPoint`.
    private(set) var serverEndPoint: [UInt8]?
    /// The hash of the server certificate of a connection, if it differs from the hash that the login is bound to: `.some(nil)`
    /// for a connection without TLS; `nil` if all connections match.
    private(set) var changedChannel: [UInt8]??
    /// The sockets that libcurl has opened since the last request.
    private var opened: [Int32] = []
    /// The connection that the last request was sent on.
    private var current: ConnectionEnds?
    /// Whether a connection in use before was not used, because it has received bytes that belong to no request.
    private(set) var hasStrayInput = false

    init(_ request: SharedRequest, _ certificate: LoadedCertificate?) {
        gate = ConnectionGate(request.deniedAddresses)
        self.certificate = certificate
    }

    /// Makes the context of a new connection record its handshake and use the client certificate.
    mutating func attach(_ context: OpaquePointer, to peer: TLSRecord.Peer, _ request: SharedRequest) -> Bool {
        if peer == .proxy {
            let record = TLSRecord(.proxy, host: request.proxy?.host ?? "", policy: .verify)
            proxy = record
            return record.attach(to: context)
        }
        let record = TLSRecord(
            .origin, host: request.url.origin.host.string, policy: request.trust,
            refusesRequest: request.refusesCertificateRequest && certificate == nil)
        origin = record
        return record.attach(to: context) && certificate.map { $0.use(in: context) } ?? true
    }

    mutating func admit(_ address: @autoclosure () -> NetworkAddress?, port: Int) -> Bool {
        gate.admit(address(), port: port)
    }

    /// Records a socket that libcurl opens.
    mutating func open(_ socket: Int32) { opened.append(socket) }

    /// Whether nothing has arrived on a connection since its last response, or since it was opened: it would belong to no request
    /// (RFC 9112 section 9.2).
    mutating func isQuiet(_ ends: ConnectionEnds, _ easy: EasyHandle, _ connections: OpenConnections) -> Bool {
        let isNew = !opened.isEmpty && connections.add(ends, among: opened, proxy)
        (opened, current) = ([], ends)
        // A https proxy has just sent session tickets, which cannot be told from data here.
        if isNew && proxy != nil { return true }
        hasStrayInput = connections.hasInput(
            on: ends, isNew: isNew, watchword_curl_easy_get_ssl(easy.pointer).map { OpaquePointer($0) })
        return !hasStrayInput  // guard: input-before-the-request
    }

    /// Lets no further request use the connection.
    func giveUp(in connections: OpenConnections) {
        if let current { connections.giveUp(current) }
    }

    /// Whether the server certificate of the connection that `easy` uses has the hash that the login is bound to.
    mutating func isBound(_ easy: EasyHandle, to bound: [UInt8]?) -> Bool {
        guard let bound else { return true }
        let shown = ServerEndPoint.hash(on: easy)
        if shown != bound { changedChannel = .some(shown) }
        return shown == bound
    }

    /// Finds the record that was made at the handshake of a reused connection.
    mutating func findOrigin(on easy: EasyHandle) {
        guard origin == nil, let connection = watchword_curl_easy_get_ssl(easy.pointer),
            let record = TLSRecord.of(OpaquePointer(connection)), record.peer == .origin
        else { return }
        origin = record
    }

    mutating func recordEndPoint(on easy: EasyHandle) { serverEndPoint = ServerEndPoint.hash(on: easy) }
}

/// The connection that the request was sent on. libcurl sends it again by itself if a kept one ends without a response.
enum ConnectionUse: Equatable {
    /// The request was not sent.
    case none
    case new
    /// Made by an earlier transfer, which had logged in, perhaps.
    case kept(hasLogin: Bool)
    /// It was kept, and has ended without a response.
    case ended(hadLogin: Bool)
}
