internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension TransferFailure {
    /// Maps libcurl's result codes to the few kinds that clients distinguish.
    /// - Parameters:
    ///   - limit: the timeout that the transfer had.
    ///   - hasSent: whether a part of a request was sent.
    init(_ code: CURLcode, for request: SharedRequest, limit: Duration, errorText: String, hasSent: Bool) {
        let kind: Kind =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .nameNotResolved
            case CURLE_COULDNT_CONNECT: .cannotConnect
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS: .serverNotTrusted
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
                CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CLIENTCERT, CURLE_SSL_SHUTDOWN_FAILED:
                .tlsFailed
            case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM,
                CURLE_HTTP2:
                .connectionLost
            case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
                .malformedResponse
            case CURLE_SEND_FAIL_REWIND: .requestBodyGone
            case CURLE_OUT_OF_MEMORY: .outOfMemory
            // libcurl has codes for many faults of a response, some of them surprising.
            default: hasSent ? .malformedResponse : .internalError
            }
        let wireCause: FailureCause? =
            switch code {
            case CURLE_GOT_NOTHING: .emptyReply
            case CURLE_PARTIAL_FILE: .bodyCutShort
            case CURLE_SEND_ERROR: .sendFailed
            case CURLE_RECV_ERROR: .receiveFailed
            case CURLE_HTTP2, CURLE_HTTP2_STREAM: .http2
            case CURLE_UNSUPPORTED_PROTOCOL: .notHTTP
            // The second one for a line without a field name.
            case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_FUNCTION_ARGUMENT: .malformedHeader
            case CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR: .badContentCoding
            default: nil
            }
        let reason =
            switch code {
            case CURLE_BAD_FUNCTION_ARGUMENT: "invalid header line"
            case CURLE_WRITE_ERROR: "it cannot be decoded"
            default: errorText.isEmpty ? TransferLibrary.description(of: code) : errorText.shortened
            }
        self.init(kind, "\(kind.sentence(request, limit)) (\(reason))", wireCause: wireCause)
    }
}

extension TransferFailure.Kind {
    fileprivate func sentence(_ request: SharedRequest, _ limit: Duration) -> String {
        let origin = request.url.origin
        return switch self {
        case .nameNotResolved: "cannot resolve host \(origin.host); check the spelling and the network"
        case .cannotConnect: "cannot connect to \(origin.host), port \(origin.port); check that the server runs"
        case .timedOut: "the transfer from \(origin.text) timed out after \(limit.wholeMilliseconds) ms"
        case .serverNotTrusted: "the certificate of \(origin.host), port \(origin.port), is not trusted"
        case .tlsFailed: "TLS handshake with \(origin.host), port \(origin.port), failed"
        case .connectionLost: "lost the connection to \(origin.host), port \(origin.port)"
        case .malformedResponse: "malformed response from \(origin.text)"
        case .headersTooLarge: "the header of the response from \(origin.text) is too large"
        case .requestBodyGone: "cannot send the request to \(origin.text) again: its body was not copied"
        case .bodyTooLarge, .requestBodyIncomplete, .cancelled, .quotaExceeded, .outOfMemory, .internalError:
            "the transfer from \(origin.text) failed"
        }
    }
}

/// The failures that do not concern one server.
extension TransferFailure {
    static let cancelled = TransferFailure(.cancelled, "the transfer was cancelled")
    static let shutDown = TransferFailure(.cancelled, "the transfer engine is shut down")
    static let timedOut = TransferFailure(
        .timedOut, "timed out waiting for the file, token or ticket of the login")

    // The body of a response.
    static let noBody = TransferFailure(
        .internalError, "no such body: it was read to its end, or not read for too long")
    static let bodyTaken = TransferFailure(.internalError, "the body is already being read, or was read")
    static let bodyUnreadable = TransferFailure(.internalError, "cannot read the stored copy of the body")
    static let readerGone = TransferFailure(.cancelled, "the body's reader closed its connection")
    static let readerWrites = TransferFailure(.cancelled, "unexpected data from body reader")
    static let readerIdle = TransferFailure(
        .timedOut, "the body was not read for \(EngineLimits.readerIdleSeconds) seconds")

    // A request's body that the client sends through a socket.
    static let noMoreBody = TransferFailure(
        .requestBodyIncomplete,
        "no data for the request's body for \(EngineLimits.readerIdleSeconds) seconds")
}
