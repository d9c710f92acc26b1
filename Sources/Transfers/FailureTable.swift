internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension TransferFailure {
    /// libcurl's hundred codes, in the few words that make a difference to somebody.
    /// - Parameter limit: the time that a transfer had which ran out of it.
    init(_ code: CURLcode, for request: TransferRequest, limit: Duration, errorText: String) {
        let kind: Kind =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .nameNotResolved
            case CURLE_COULDNT_CONNECT: .cannotConnect
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS: .serverNotTrusted
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
                CURLE_SSL_ENGINE_INITFAILED:
                .tlsFailed
            case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM,
                CURLE_HTTP2:
                .connectionLost
            case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING: .malformedResponse
            case CURLE_SEND_FAIL_REWIND: .requestBodyGone
            case CURLE_OUT_OF_MEMORY: .outOfMemory
            default: .internalError
            }
        let wireCause: FailureCause? =
            switch code {
            case CURLE_GOT_NOTHING: .emptyReply
            case CURLE_PARTIAL_FILE: .bodyCutShort
            case CURLE_SEND_ERROR: .sendFailed
            case CURLE_RECV_ERROR: .receiveFailed
            case CURLE_HTTP2, CURLE_HTTP2_STREAM: .http2
            case CURLE_UNSUPPORTED_PROTOCOL: .notHTTP
            case CURLE_WEIRD_SERVER_REPLY: .malformedHeader
            case CURLE_BAD_CONTENT_ENCODING: .badContentCoding
            default: nil
            }
        let reason = errorText.isEmpty ? TransferLibrary.description(of: code) : errorText.shortened
        self.init(kind, "\(kind.sentence(request, limit)) (\(reason))", wireCause: wireCause)
    }
}

extension TransferFailure.Kind {
    fileprivate func sentence(_ request: TransferRequest, _ limit: Duration) -> String {
        let origin = request.url.origin
        return switch self {
        case .nameNotResolved: "The name \(origin.host) was not found. Check its spelling, and the network."
        case .cannotConnect: "Nothing answers at \(origin.host), port \(origin.port). Check that the server runs."
        case .timedOut: "\(origin.text) did not answer within \(limit.wholeMilliseconds) ms."
        case .serverNotTrusted: "The certificate of \(origin.host), port \(origin.port), is not trusted."
        case .tlsFailed: "No protected connection to \(origin.host), port \(origin.port), could be made."
        case .connectionLost: "The connection to \(origin.host), port \(origin.port), ended too early."
        case .malformedResponse: "\(origin.text) sent something that is not HTTP."
        case .headersTooLarge: "The header of the response of \(origin.text) is too large."
        case .requestBodyGone: "\(origin.text) has to be sent the request again, and its body is gone."
        case .bodyTooLarge, .requestBodyIncomplete, .cancelled, .quotaExceeded, .outOfMemory, .internalError:
            "The transfer from \(origin.text) failed."
        }
    }
}
