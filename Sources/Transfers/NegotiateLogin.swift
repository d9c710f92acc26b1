internal import CGSSAPI
internal import COpenSSL
internal import WatchwordCore
internal import WatchwordProtocol

/// A login with a Kerberos ticket (RFC 4559), performed here and not by libcurl. libcurl would wait for the KDC on the engine's
/// loop, let name servers choose the service, send NTLM in Negotiate without a ticket, and not check the server's answer.
final class NegotiateLogin {
    /// The value of the `Authorization` or `Proxy-Authorization` field.
    private(set) var authorization = Secret(capacity: 0) { _ in 0 }
    private var context: gss_ctx_id_t?
    private var name: gss_name_t?
    private var credential: gss_cred_id_t?
    /// Whether the GSS-API context is complete, so that no proof by the server is outstanding.
    private var isComplete = false

    /// Blocks while it requests a ticket from the KDC, which may take minutes if no KDC answers.
    /// - Parameter serverEndPoint: the hash of the server certificate (see `ServerEndPoint`); `nil` for no channel binding.
    /// - Throws: `TransferFailure` with cause `noTicket`.
    init(host: String, delegates: Bool, serverEndPoint: [UInt8]?) throws(TransferFailure) {
        let service = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        var minor: OM_uint32 = 0
        try Self.check(watchword_gss_import_service(&minor, service, &name), minor, service)
        try Self.check(watchword_gss_acquire_kerberos_only(&minor, &credential), minor, service)
        var token = gss_buffer_desc()
        var binding = serverEndPoint.map(ServerEndPoint.applicationData) ?? []
        let major = binding.withUnsafeMutableBytes { bytes in
            var channel = gss_buffer_desc(length: bytes.count, value: bytes.baseAddress)
            return withUnsafeMutablePointer(to: &channel) { channel in
                watchword_gss_step(
                    &minor, credential, &context, name, delegates ? 1 : 0, bytes.isEmpty ? nil : channel, nil, &token)
            }
        }
        defer { Self.release(&token) }
        try Self.check(major, minor, service)
        isComplete = major == GSS_S_COMPLETE
        let bytes = UnsafeRawBufferPointer(start: token.value, count: token.length)
        guard !bytes.isEmpty, !bytes.holdsNTLM else {
            throw Self.noTicket(service, "GSS-API returned a token that is not Kerberos")
        }
        authorization = Self.value(bytes)
    }

    deinit {
        var minor: OM_uint32 = 0
        gss_delete_sec_context(&minor, &context, nil)
        gss_release_cred(&minor, &credential)
        gss_release_name(&minor, &name)
    }

    /// Whether the server's proof of its identity is correct or missing. A missing proof is accepted, because TLS authenticates
    /// the server.
    func isProven(by headers: ResponseHeaders) -> Bool {
        guard headers.status != 401, !isComplete, let answer = headers.negotiateToken else { return true }
        guard var bytes = Self.decoded(answer) else { return false }
        return bytes.withUnsafeMutableBytes { bytes in
            var input = gss_buffer_desc(length: bytes.count, value: bytes.baseAddress)
            var output = gss_buffer_desc()
            var minor: OM_uint32 = 0
            let major = watchword_gss_step(&minor, credential, &context, name, 0, nil, &input, &output)
            Self.release(&output)
            isComplete = major == GSS_S_COMPLETE
            return isComplete
        }
    }

    private static func value(_ token: UnsafeRawBufferPointer) -> Secret {
        let prefix = Array("Negotiate ".utf8)
        // `EVP_EncodeBlock` adds a NUL byte.
        return Secret(capacity: prefix.count + (token.count + 2) / 3 * 4 + 1) { buffer in
            buffer.copyBytes(from: prefix)
            let text = buffer.baseAddress?.advanced(by: prefix.count).assumingMemoryBound(to: UInt8.self)
            let source = token.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return prefix.count + Int(EVP_EncodeBlock(text, source, Int32(token.count)))
        }
    }

    private static func decoded(_ text: String) -> [UInt8]? {
        let source = Array(text.utf8)
        var bytes = [UInt8](repeating: 0, count: source.count / 4 * 3 + 3)
        let count = EVP_DecodeBlock(&bytes, source, Int32(clamping: source.count))
        guard count > 0 else { return nil }
        return Array(bytes.prefix(Int(count) - min(2, source.reversed().prefix { $0 == UInt8(ascii: "=") }.count)))
    }

    private static func check(_ major: OM_uint32, _ minor: OM_uint32, _ host: String) throws(TransferFailure) {
        guard watchword_gss_failed(major) != 0 else { return }
        throw noTicket(host, minor == 0 ? text(major, GSS_C_GSS_CODE) : text(minor, GSS_C_MECH_CODE))
    }

    private static func noTicket(_ host: String, _ reason: String) -> TransferFailure {
        TransferFailure(
            .internalError,
            "no Kerberos ticket for HTTP/\(host) (\(reason)); run \"kinit\", and check it with \"klist\"",
            cause: .noTicket)
    }

    private static func text(_ status: OM_uint32, _ kind: Int32) -> String {
        var (minor, more): (OM_uint32, OM_uint32) = (0, 0)
        var buffer = gss_buffer_desc()
        gss_display_status(&minor, status, kind, nil, &more, &buffer)
        defer { gss_release_buffer(&minor, &buffer) }
        let bytes = UnsafeRawBufferPointer(start: buffer.value, count: buffer.length)
        return String(decoding: bytes, as: UTF8.self).shortened
    }

    private static func release(_ buffer: inout gss_buffer_desc) {
        var minor: OM_uint32 = 0
        if let value = buffer.value { OPENSSL_cleanse(value, buffer.length) }
        gss_release_buffer(&minor, &buffer)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes contain the signature of an NTLM message, or the OID of NTLM as in a SPNEGO offer.
    var holdsNTLM: Bool {
        let marks = [Array("NTLMSSP\0".utf8), [0x2B, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0A]]
        return marks.contains { mark in
            indices.contains { $0 + mark.count <= count && self[$0..<($0 + mark.count)].elementsEqual(mark) }
        }
    }
}

extension ResponseHeaders {
    /// The server's answer to a Negotiate login; its size is limited with the header section.
    fileprivate var negotiateToken: String? {
        let scheme = "negotiate "
        let value = fields.values(of: "WWW-Authenticate").first { $0.lowercased().hasPrefix(scheme) }
        return value.map { String($0.dropFirst(scheme.count)) }
    }
}
