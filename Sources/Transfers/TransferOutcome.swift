internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension CurlTransfer {
    /// The outcome of the transfer, after libcurl has finished with `code`.
    func outcome(_ code: CURLcode) -> TransferPort.Outcome {
        switch result(code) {
        case .success(var response):
            response.requestBody = source?.state ?? .untouched
            return .success(response)
        case .failure(var failure):
            failure.requestBody = source?.state ?? .untouched
            failure.hasSentRequest = hasSentRequest
            failure.hasUnansweredLogin = hasUnansweredLogin(code)
            return .failure(failure)
        }
    }

    private func result(_ code: CURLcode) -> TransferPort.Outcome {
        // The challenge or the redirect counts, not its body.
        let isHeadEnough = head.isIntermediate && !body.isDelivered
        if let stopped, !(isHeadEnough && stopped.isOfBody) { return .failure(stoppedFailure(stopped)) }
        if code != CURLE_OK && connections.hasStrayInput { return .failure(strayInput) }
        if let changedChannel = connections.changedChannel { return .failure(channelChanged(changedChannel)) }
        if code != CURLE_OK, let failure = connections.gate.failure(for: request) { return .failure(failure) }
        if let end = code == CURLE_OK || isRefusedTunnel ? head.ntlm.endOfTransfer : head.ntlm.end {
            if let failure = TransferFailure(end, for: request) { return .failure(failure) }
            // libcurl was stopped, so the body of the refusal is missing.
            if headers.isComplete { return .success(response(isFromProxy: end.target == .proxy)) }
        }
        if code != CURLE_OK && isRefusedTunnel {
            guard headers.status == 407, easy.connectStatus == 407 else { return .failure(refusedTunnel) }
            // If the header section is incomplete, further schemes may have been offered in the missing part.
            return headers.isComplete ? .success(response(isFromProxy: true)) : .failure(failure(code))
        }
        guard code == CURLE_OK || isHeadEnough else { return .failure(failure(code)) }
        if request.options.opensTunnel { return .success(openedTunnel) }
        guard headers.status > 0 else {
            return .failure(
                TransferFailure(
                    .malformedResponse, "malformed response from \(request.url.origin.text): not HTTP",
                    wireCause: .notHTTP))
        }
        // libcurl accepts the end of the connection as the end of the header section.
        guard headers.isComplete else {
            return .failure(
                TransferFailure(
                    .connectionLost, "\(request.url.origin.text) closed the connection within the header section"))
        }
        guard body.proofs.isLoginProven(by: headers) else {
            return .failure(
                TransferFailure(
                    .malformedResponse,
                    "\(request.url.origin.text) did not prove that it is the service of the Kerberos ticket; check whether the connection is intercepted",
                    cause: .serverProofWrong))
        }
        if let failure = wrongProof { return .failure(failure) }
        let isAtEnd = body.flow == nil || body.isDelivered
        let bodyProblem = isAtEnd ? self.bodyProblem(code) : nil
        if let bodyProblem, !isHeadEnough { return .failure(bodyProblem) }
        let hasPlainProxy = !request.isTunnelled && request.proxy.map { $0.kind != .socks5h } ?? false
        var response = response(isFromProxy: hasPlainProxy && headers.status == 407)
        response.bodyFailure = bodyProblem
        return .success(response)
    }

    /// Why the body is not complete; `nil` if it is.
    private func bodyProblem(_ code: CURLcode) -> TransferFailure? {
        if let stopped { return stoppedFailure(stopped) }
        if code != CURLE_OK { return failure(code) }
        return isUndecodable ? stoppedFailure(.malformedResponse) : nil
    }

    /// The failure for a wrong Digest proof (rspauth). Checked here only if the body is streamed, in a store or decoded; otherwise
    /// the caller checks the proof in the response.
    private var wrongProof: TransferFailure? {
        let isElsewhere = body.isDelivered || body.store != nil || isDecoded
        guard isElsewhere, !body.proofs.isBodyProven(by: headers) else { return nil }
        return TransferFailure(
            .malformedResponse,
            "\(request.url.origin.text) did not prove that it knows the password (wrong rspauth at the end of the response); do not trust the response, and check whether the connection is intercepted",
            cause: .serverProofWrong)
    }

    /// See `TransferOptions.opensTunnel`.
    private var openedTunnel: TransferResponse {
        var response = TransferResponse(status: 200)
        response.openBody = OpenBody(transfer: id, announcedBytes: nil)
        return response
    }

    private var isDecoded: Bool { request.options.decompresses && headers.isCoded }

    private func response(isFromProxy: Bool) -> TransferResponse {
        var response = TransferResponse(
            status: headers.status, httpVersion: easy.httpVersion, headers: headers.fields, body: body.bytes)
        response.reason = headers.reason
        response.trailers = headers.trailers
        response.isDecoded = isDecoded
        response.share = body.share
        response.openBody = body.store.map { OpenBody(transfer: id, announcedBytes: $0.count) }
        response.isFromProxy = isFromProxy
        if request.usesCookies, head.isInBetween, headers.fields.firstValue(of: "Set-Cookie") != nil {
            let cookies = easy.cookies(limit: 2 * EngineLimits.cookies)
            // The new ones come first, so that they stay if there are too many.
            let new = cookies.filter { !request.cookies.contains($0) }
            response.cookies = Array(
                (new + cookies.filter { request.cookies.contains($0) }).prefix(EngineLimits.cookies))
        }
        response.clientCertificateRequest = connections.origin?.certificateRequest
        response.clientCertificate = connections.certificate?.content
        response.serverEndPoint = connections.serverEndPoint
        response.reusedConnection = easy.number(CURLINFO_NUM_CONNECTS) == 0
        return response
    }

    /// The announced size of the body in bytes; `nil` if it is unknown, as for a body that is decompressed.
    var announcedBytes: Int? {
        guard !request.options.decompresses || headers.fields.firstValue(of: "Content-Encoding") == nil else {
            return nil
        }
        // Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3).
        guard headers.fields.firstValue(of: "Transfer-Encoding") == nil else { return nil }
        return headers.fields.firstValue(of: "Content-Length").flatMap { Int($0) }
    }

    var progress: TransferProgress {
        TransferProgress(
            receivedBytes: body.count, announcedBytes: announcedBytes, sentBytes: easy.offset(CURLINFO_SIZE_UPLOAD_T))
    }

    /// Whether the proxy refused CONNECT.
    private var isRefusedTunnel: Bool {
        request.isTunnelled && easy.connectStatus != 0 && !(200...299).contains(easy.connectStatus)
    }

    private var refusedTunnel: TransferFailure {
        let origin = request.url.origin
        return TransferFailure(
            .cannotConnect,
            "the proxy refused to connect to \(origin.host), port \(origin.port) (status \(easy.connectStatus))",
            cause: .proxyRefused(status: easy.connectStatus))
    }

    private func failure(_ code: CURLcode) -> TransferFailure {
        if code == CURLE_OUT_OF_MEMORY && hasBegunToAnswer { return longLine }
        if code == CURLE_OPERATION_TIMEDOUT, hasMetEarlierLimit, easy.number(CURLINFO_REQUEST_SIZE) > 0,
            let slow = request.slowest
        {
            return tooSlow(slow)
        }
        var failure =
            proxyFailure(code)
            ?? TransferFailure(
                code, for: request, limit: timeLimit, errorText: handle.errorText,
                hasSent: easy.number(CURLINFO_REQUEST_SIZE) > 0)
        if let facts = connections.origin?.refusal {
            failure = TransferFailure(.serverNotTrusted, for: request, facts)
        } else if isAboutClientCertificate(failure.kind) {
            let hasShown = request.clientCertificate != nil
            failure = TransferFailure(
                .tlsFailed,
                hasShown
                    ? "\(request.url.origin.text) rejected the client certificate"
                    : "\(request.url.origin.text) requires a client certificate",
                cause: hasShown ? .clientCertificateRefused : .clientCertificateRequired)
        }
        failure.clientCertificateRequest = connections.origin?.certificateRequest
        return failure
    }

    /// Whether the connection failed because the server requested a client certificate. The server usually reports such a
    /// failure with an alert.
    ///
    /// In TLS 1.3 the failure occurs after the handshake (RFC 8446 section 4.4.2.4), and the alert may be lost because data has
    /// been sent meanwhile. Without the alert, the loss of the connection may also mean that the server has processed the
    /// request. Then the result is `true` only if nothing was sent or the method is safe, because it may lead to
    /// another attempt.
    private func isAboutClientCertificate(_ kind: TransferFailure.Kind) -> Bool {
        guard let tls = connections.origin, tls.certificateRequest != nil, headers.status == 0 else { return false }
        if tls.hasRefusedRequest { return true }
        if let alert = tls.alert { return TransferFailure.certificateAlerts.contains(alert) }
        return kind == .connectionLost && tls.refusesAfterHandshake
            && (request.isSafe || easy.number(CURLINFO_REQUEST_SIZE) == 0)
    }

    /// Whether CURLE_OUT_OF_MEMORY means a header line over libcurl's limit, and not a lack of memory.
    private var hasBegunToAnswer: Bool { easy.number(CURLINFO_REQUEST_SIZE) > 0 && !headers.isComplete }

    private var longLine: TransferFailure {
        TransferFailure(
            .headersTooLarge,
            "header line from \(request.url.origin.text) is too long (limit \(CURL_MAX_HTTP_HEADER) bytes)")
    }

    private func tooSlow(_ limit: LowSpeed) -> TransferFailure {
        TransferFailure(
            .timedOut,
            "the transfer from \(request.url.origin.text) was slower than \(limit.bytesPerSecond) bytes per second for \(limit.seconds) seconds"
        )
    }

    private var strayInput: TransferFailure {
        TransferFailure(
            .connectionLost,
            "\(request.url.origin.text), or a proxy on the way, sends data that belong to no request; check what runs there"
        )
    }

    private func channelChanged(_ serverEndPoint: [UInt8]?) -> TransferFailure {
        TransferFailure(
            .tlsFailed,
            "\(request.url.origin.text) uses a different certificate on each connection, but a Kerberos login is bound to one; ask the server's administrator, or check the proxies in between",
            cause: .channelChanged(serverEndPoint: serverEndPoint))
    }

    private func stoppedFailure(_ kind: TransferFailure.Kind) -> TransferFailure {
        var cause: FailureCause?
        if kind == .malformedResponse && !head.isUnrequestedSwitch {
            cause = head.framingProblem == nil ? .badContentCoding : .malformedHeader
        }
        return TransferFailure(
            kind, limitText(kind), cause: kind == .connectionLost && hasLostLogin ? .loginConnectionEnded : nil,
            wireCause: cause)
    }

    private func limitText(_ kind: TransferFailure.Kind) -> String {
        switch kind {
        case .requestBodyIncomplete:
            source?.problem ?? ""
        case .malformedResponse where head.isUnrequestedSwitch:
            "malformed response from \(request.url.origin.text): unrequested 101 Switching Protocols"
        case .malformedResponse where head.framingProblem != nil:
            "malformed response from \(request.url.origin.text): \(head.framingProblem ?? "")"
        case .malformedResponse:
            headers.hasSafeContentCoding
                ? "malformed response from \(request.url.origin.text): its body cannot be decoded, or ends too early"
                : "the response from \(request.url.origin.text) has an unrequested content coding"
        case .connectionLost:
            "\(request.url.origin.text) has closed the connection on which the program had logged in; log in again"
        case .headersTooLarge:
            "the header of the response from \(request.url.origin.text) is larger than \(EngineLimits.headerBytes) bytes"
        case .quotaExceeded:
            "cannot store the body of the response from \(request.url.origin.text): \(body.store?.shortage?.diskText ?? "")"
        case .outOfMemory:
            "no disk space for the body of the response from \(request.url.origin.text)"
        default:
            "the response from \(request.url.origin.text) is larger than \(largestBody) bytes"
        }
    }
}

extension TransferFailure.Kind {
    /// Whether a transfer that was stopped for this reason had received the header section.
    fileprivate var isOfBody: Bool {
        switch self {
        case .bodyTooLarge, .quotaExceeded, .outOfMemory, .headersTooLarge: true
        default: false
        }
    }
}

extension TransferFailure {
    /// The alerts that can mean a missing or rejected client certificate: handshake_failure, bad_certificate to unknown_ca,
    /// access_denied, decrypt_error and certificate_required (RFC 8446 section 6).
    fileprivate static let certificateAlerts: Set<Int> = [40, 42, 43, 44, 45, 46, 48, 49, 51, 116]

    fileprivate init(_ kind: Kind, for request: SharedRequest, _ facts: ServerTrustFacts) {
        let origin = request.url.origin
        let problems = facts.problems.map(\.rawValue).sorted().joined(separator: ", ")
        let reason = problems.isEmpty ? "" : " (\(problems))"
        self.init(kind, "the certificate of \(origin.host), port \(origin.port), is not trusted\(reason)")
        serverTrust = facts
    }
}

extension EasyHandle {
    /// The status of the proxy's response to CONNECT; 0 if there was none.
    var connectStatus: Int { number(CURLINFO_HTTP_CONNECTCODE) }
}
