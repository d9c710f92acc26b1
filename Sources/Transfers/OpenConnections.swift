internal import CCurl
internal import COpenSSL
internal import Glibc
internal import WatchwordCore

/// The ends of a connection, as libcurl shows them before a request.
struct ConnectionEnds: Hashable {
    private let peer: String
    private let peerPort: Int32
    private let own: String
    let ownPort: Int32

    init(peer: UnsafePointer<CChar>?, _ peerPort: Int32, own: UnsafePointer<CChar>?, _ ownPort: Int32) {
        self.peer = peer.map { String(cString: $0) } ?? ""
        self.own = own.map { String(cString: $0) } ?? ""
        (self.peerPort, self.ownPort) = (peerPort, ownPort)
    }

    /// The ports differ nearly always, and texts take long.
    func hash(into hasher: inout Hasher) {
        hasher.combine(peerPort)
        hasher.combine(ownPort)
    }
}

/// The open connections of one pool, to see what their peers send while they are idle. libcurl 7.88 does not look at it, and
/// would take it for the response to the next request. Used on one loop.
final class OpenConnections {
    private struct Entry {
        let socket: Int32
        /// The TLS connection to a https proxy, which carries the TLS connection to the origin.
        let proxy: TLSRecord?
    }

    private var entries: [ConnectionEnds: Entry] = [:]
    private var ends: [Int32: ConnectionEnds] = [:]

    /// Adds a connection that a request is about to be sent on for the first time.
    /// - Parameter opened: the sockets that libcurl has opened for the transfer; some may be closed again.
    /// - Returns: whether the connection is one of them.
    func add(_ connection: ConnectionEnds, among opened: [Int32], _ proxy: TLSRecord?) -> Bool {
        guard let socket = opened.last(where: { Self.port(of: $0) == connection.ownPort }) else { return false }
        if let previous = ends.updateValue(connection, forKey: socket) { entries[previous] = nil }
        entries[connection] = Entry(socket: socket, proxy: proxy)
        return true
    }

    /// Makes `hasInput` true for a connection, which libcurl closes then.
    func giveUp(_ connection: ConnectionEnds) { entries[connection] = nil }

    /// Called by libcurl in place of close(2).
    func close(_ socket: Int32) -> Int32 {
        if let connection = ends.removeValue(forKey: socket) { entries[connection] = nil }
        return Glibc.close(socket)
    }

    /// Whether a connection that libcurl is about to use has received anything since the last response, or has ended. With
    /// HTTP/2 every frame names its request, so that nothing can be attributed to another one.
    /// - Parameters:
    ///   - isNew: whether no request was sent on it yet. Then its end is left to libcurl, which finds out the reason.
    ///   - tls: OpenSSL's `SSL` of the innermost TLS connection, if any.
    func hasInput(on connection: ConnectionEnds, isNew: Bool, _ tls: OpaquePointer?) -> Bool {
        if let tls, Self.isMultiplexed(tls) { return false }
        guard let entry = entries[connection] else { return true }
        var byte: UInt8 = 0
        let received = recv(entry.socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        let isQuiet = received < 0 && errno == EAGAIN
        guard let tls else { return isNew ? received > 0 : !isQuiet }
        if let outer = entry.proxy?.session, outer != tls {
            // The records of the proxy cannot be read here; messages of TLS itself are rare when a connection is idle.
            return !isQuiet || SSL_has_pending(outer) == 1 || SSL_has_pending(tls) == 1
        }
        return (!isQuiet || SSL_has_pending(tls) == 1) && Self.hasData(tls, entry.socket, orEnd: !isNew)
    }

    /// Whether `tls` has received application data, or perhaps its end, and not only messages of TLS itself, such as session
    /// tickets.
    private static func hasData(_ tls: OpaquePointer, _ socket: Int32, orEnd: Bool) -> Bool {
        guard let direct = BIO_new_socket(socket, BIO_NOCLOSE) else { return true }
        // libcurl's own BIO works only during a call of libcurl.
        let (input, output) = (SSL_get_rbio(tls), SSL_get_wbio(tls))
        BIO_up_ref(input)
        BIO_up_ref(output)
        BIO_up_ref(direct)
        SSL_set0_rbio(tls, direct)
        SSL_set0_wbio(tls, direct)
        ERR_set_mark()
        var byte: UInt8 = 0
        let count = SSL_peek(tls, &byte, 1)
        let isWaiting = count <= 0 && SSL_get_error(tls, count) == SSL_ERROR_WANT_READ
        ERR_pop_to_mark()
        SSL_set0_rbio(tls, input)
        SSL_set0_wbio(tls, output)
        return orEnd ? !isWaiting : count > 0
    }

    private static func isMultiplexed(_ tls: OpaquePointer) -> Bool {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(tls, &name, &count)
        return UnsafeBufferPointer(start: name, count: Int(count)).elementsEqual("h2".utf8)
    }

    private static func port(of socket: Int32) -> Int32? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { internet in
                let isKnown = internet.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getsockname(socket, $0, &length) == 0
                }
                // The port is at the same place in an IPv6 address.
                return isKnown ? Int32(UInt16(bigEndian: internet.pointee.sin_port)) : nil
            }
        }
    }
}
