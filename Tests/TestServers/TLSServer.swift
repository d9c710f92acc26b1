import COpenSSL
import Glibc
import Synchronization

/// A TLS server with a given certificate, which sends the same response to every request.
package final class TLSServer: Sendable {
    package struct Options: Sendable {
        /// Clients must present a certificate of this issuer.
        package var clientIssuer: TestCertificate?
        package var isClientOptional: Bool
        package var version: Int32?
        /// Selects HTTP/2 if the client offers it, although the server does not implement it.
        package var prefersHTTP2: Bool
        /// Closes the connection right after a refused handshake, while the client may still send.
        package var closesAtOnce: Bool
        /// Requests a certificate again after the first request.
        package var asksLate: Bool
        /// The port to which a tunnel leads, if this is a proxy.
        package var tunnel: Int?
        package var answer: String
        /// The response to the first request of a connection, if it differs.
        package var firstAnswer: String?
        /// Sent 20 ms after the first response of a connection.
        package var late: Late?

        package enum Late: Sendable {
            case answer(String)
            /// A message of TLS 1.3, which contains no data.
            case sessionTicket
        }

        package static let defaultAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

        package init(
            clientIssuer: TestCertificate? = nil,
            isClientOptional: Bool = false,
            version: Int32? = nil,
            prefersHTTP2: Bool = false,
            closesAtOnce: Bool = false,
            asksLate: Bool = false,
            tunnel: Int? = nil,
            answer: String = Self.defaultAnswer,
            firstAnswer: String? = nil,
            late: Late? = nil
        ) {
            self.clientIssuer = clientIssuer
            self.isClientOptional = isClientOptional
            self.version = version
            self.prefersHTTP2 = prefersHTTP2
            self.closesAtOnce = closesAtOnce
            self.asksLate = asksLate
            self.tunnel = tunnel
            self.answer = answer
            self.firstAnswer = firstAnswer
            self.late = late
        }
    }

    package let port: Int
    private let listener: Int32
    // `nonisolated(unsafe)`: made once, and used by OpenSSL under its own locks.
    nonisolated(unsafe) private let context: OpaquePointer
    private let options: Options
    private let state = Mutex((heard: [String](), isStopped: false, late: 0))

    /// - Parameter port: 0 for any.
    package init(
        _ certificate: TestCertificate, chain: [TestCertificate] = [], _ options: Options = Options(), port: Int = 0
    ) {
        (listener, self.port) = Loopback.listen(on: port)
        self.options = options
        context = SSL_CTX_new(TLS_server_method())
        SSL_CTX_set_security_level(context, 0)
        SSL_CTX_set_session_id_context(context, "test", 4)
        let stack = OPENSSL_sk_new_null()
        for one in chain { OPENSSL_sk_push(stack, UnsafeRawPointer(one.certificate)) }
        precondition(SSL_CTX_use_cert_and_key(context, certificate.certificate, certificate.key, stack, 1) == 1)
        if let issuer = options.clientIssuer {
            let mode = SSL_VERIFY_PEER | (options.isClientOptional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT)
            SSL_CTX_set_verify(context, mode, nil)
            SSL_CTX_add_client_CA(context, issuer.certificate)
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), issuer.certificate)
        }
        if options.prefersHTTP2 {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, chosen, length, offered, count, _ in
                    let names = UnsafeBufferPointer(start: offered, count: Int(count))
                    let name = names.indices.first { names[$0...].starts(with: [2, 0x68, 0x32]) }
                    chosen?.pointee = offered?.advanced(by: name.map { $0 + 1 } ?? 0)
                    length?.pointee = 2
                    return name == nil ? SSL_TLSEXT_ERR_NOACK : SSL_TLSEXT_ERR_OK
                }, nil)
        }
        if let version = options.version {
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        }
        Loopback.onThread { self.accept() }
    }

    /// The text received on each connection, in the order of acceptance; empty if the handshake failed.
    package var heard: [String] { state.withLock { $0.heard } }

    /// The number of late messages that have arrived.
    package var late: Int { state.withLock { $0.late } }

    /// Stops accepting connections. May be called again.
    package func stop() {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            shutdown(listener, Int32(SHUT_RDWR))
        }
    }

    private func accept() {
        while true {
            let connection = Glibc.accept(listener, nil, nil)
            guard connection >= 0 else {
                // Closed only here: another test may reuse the descriptor number, and this thread would accept from its socket.
                if state.withLock({ $0.isStopped }) {
                    close(listener)
                    return
                }
                usleep(1000)
                continue
            }
            let number = state.withLock { state in
                state.heard.append("")
                return state.heard.count - 1
            }
            Loopback.onThread { self.serve(connection, number) }
        }
    }

    private func serve(_ connection: Int32, _ number: Int) {
        defer { close(connection) }
        guard let tls = SSL_new(context) else { return }
        defer { SSL_free(tls) }
        SSL_set_fd(tls, connection)
        guard SSL_accept(tls) == 1 else {
            if options.closesAtOnce { return }
            return Self.drain(connection)
        }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var first = options.firstAnswer
        var late = options.late
        while true {
            let count = SSL_read(tls, &buffer, Int32(buffer.count))
            // An alert about the client certificate may still be in the send buffer.
            guard count > 0 else { return Self.drain(connection) }
            guard hear(buffer[..<Int(count)], number) else { continue }
            if let port = options.tunnel {
                guard let target = Loopback.connect(to: port) else { return }
                let reply = "HTTP/1.1 200 OK\r\n\r\n"
                SSL_write(tls, reply, Int32(reply.utf8.count))
                return Self.relay(tls, connection, target)
            }
            if options.asksLate { askLate(tls, number) }
            let answer = first ?? options.answer
            first = nil
            SSL_write(tls, answer, Int32(answer.utf8.count))
            if let message = late.take() { sendLate(message, tls) }
        }
    }

    private func sendLate(_ message: Options.Late, _ tls: OpaquePointer) {
        usleep(20_000)
        switch message {
        case .answer(let text): SSL_write(tls, text, Int32(text.utf8.count))
        case .sessionTicket:
            SSL_new_session_ticket(tls)
            SSL_do_handshake(tls)
        }
        Loopback.awaitArrival(of: SSL_get_fd(tls))
        state.withLock { $0.late += 1 }
    }

    /// Whether a request is complete.
    private func hear(_ bytes: ArraySlice<UInt8>, _ number: Int) -> Bool {
        state.withLock { state in
            state.heard[number] += String(decoding: bytes, as: UTF8.self)
            return state.heard[number].hasSuffix("\r\n\r\n")
        }
    }

    private func askLate(_ tls: OpaquePointer, _ number: Int) {
        SSL_set_verify(tls, SSL_VERIFY_PEER) { _, _ in 1 }
        if SSL_version(tls) == TLS1_3_VERSION {
            SSL_verify_client_post_handshake(tls)
        } else {
            SSL_renegotiate(tls)
        }
        SSL_do_handshake(tls)
        // Only handshake messages arrive; a reader gets no data.
        var limit = timeval(tv_sec: 0, tv_usec: 500_000)
        setsockopt(SSL_get_fd(tls), SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var byte: UInt8 = 0
        SSL_peek(tls, &byte, 1)
        if SSL_get0_peer_certificate(tls) != nil { state.withLock { $0.heard[number] += "late certificate" } }
    }

    /// Reads until the peer has closed the connection: closing with unread bytes would reset it and discard a sent alert.
    private static func drain(_ connection: Int32) {
        shutdown(connection, Int32(SHUT_WR))
        var rest = [UInt8](repeating: 0, count: 4096)
        while recv(connection, &rest, rest.count, 0) > 0 {}
    }

    private static func relay(_ tls: OpaquePointer, _ connection: Int32, _ target: Int32) {
        defer { close(target) }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            var ready = [
                pollfd(fd: connection, events: Int16(POLLIN), revents: 0),
                pollfd(fd: target, events: Int16(POLLIN), revents: 0),
            ]
            if SSL_pending(tls) == 0 { poll(&ready, 2, -1) }
            if SSL_pending(tls) > 0 || ready[0].revents != 0 {
                let count = SSL_read(tls, &buffer, Int32(buffer.count))
                guard count > 0, send(target, buffer, Int(count), Int32(MSG_NOSIGNAL)) == Int(count) else { return }
            } else {
                let count = recv(target, &buffer, buffer.count, 0)
                guard count > 0, SSL_write(tls, buffer, Int32(count)) == Int32(count) else { return }
            }
        }
    }
}

/// Sockets and threads of the test servers.
package enum Loopback {
    /// Waits until the kernel has put all that was sent on `connection` into the queue of the receiver.
    static func awaitArrival(of connection: Int32) {
        var unacknowledged: Int32 = 0
        while ioctl(connection, UInt(TIOCOUTQ), &unacknowledged) == 0, unacknowledged > 0 { usleep(1000) }
    }

    package static func listen(on port: Int = 0) -> (listener: Int32, port: Int) {
        let (listener, port) = bind(to: port)
        precondition(Glibc.listen(listener, 512) == 0, "no listener for a test")
        return (listener, port)
    }

    /// Reserves a port at which nothing listens, and that no other socket is given, until the holder is closed. A server that is
    /// given the port may listen there, if it uses SO_REUSEADDR, as `listen(on:)` does.
    package static func reserve() -> (holder: Int32, port: Int) {
        let (holder, port) = bind(to: 0)
        return (holder, port)
    }

    private static func bind(to port: Int) -> (socket: Int32, port: Int) {
        let bound = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(bound, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(bound, $0, length) == 0 && getsockname(bound, $0, &length) == 0
            }
        }
        precondition(isBound, "no loopback port for a test")
        return (bound, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns `nil` if nothing listens: a server may outlive the test that it serves.
    package static func connect(to port: Int) -> Int32? {
        let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(connection, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status == 0 { return connection }
        close(connection)
        return nil
    }

    package static func onThread(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(ThreadBody(body))
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { argument in
                Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
        pthread_detach(thread)
    }
}

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
