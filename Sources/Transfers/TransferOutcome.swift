internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension Transfer {
    /// What came of it, after libcurl has finished with `code`.
    func outcome(_ code: CURLcode) -> TransferPort.Outcome {
        switch result(code) {
        case .success(var response):
            response.requestBody = source?.state ?? .untouched
            return .success(response)
        case .failure(var failure):
            failure.requestBody = source?.state ?? .untouched
            return .failure(failure)
        }
    }

    private func result(_ code: CURLcode) -> TransferPort.Outcome {
        if let stopped { return .failure(stoppedFailure(stopped)) }
        if let changedChannel { return .failure(channelChanged(changedChannel)) }
        if code != CURLE_OK, let failure = gate.failure(for: request) { return .failure(failure) }
        if let end = code == CURLE_OK || isRefusedTunnel ? ntlm.endOfTransfer : ntlm.end {
            if let failure = TransferFailure(end, for: request) { return .failure(failure) }
            // libcurl had to be stopped, and has dropped the body of the refusal.
            if headers.isComplete { return .success(response(isFromProxy: end.target == .proxy)) }
        }
        if code != CURLE_OK && isRefusedTunnel {
            guard headers.status == 407, easy.connectStatus == 407 else { return .failure(refusedTunnel) }
            // Of one that ends before its fields do nobody knows what else it would have offered.
            return headers.isComplete ? .success(response(isFromProxy: true)) : .failure(failure(code))
        }
        guard code == CURLE_OK else { return .failure(failure(code)) }
        guard headers.status > 0 else {
            return .failure(
                TransferFailure(
                    .malformedResponse, "\(request.url.origin.text) sent something that is not HTTP.",
                    wireCause: .notHTTP))
        }
        // libcurl takes the end of the connection for the end of the header section.
        guard headers.isComplete else {
            return .failure(
                TransferFailure(
                    .connectionLost, "\(request.url.origin.text) ended the connection within the header section."))
        }
        if let login, !login.isProven(by: headers) {
            return .failure(
                TransferFailure(
                    .malformedResponse,
                    "\(request.url.origin.text) does not prove that it is the service that the ticket is for.",
                    cause: .serverProofWrong))
        }
        if let failure = wrongProof { return .failure(failure) }
        let hasPlainProxy = !request.isTunnelled && request.proxy.map { $0.kind != .socks5h } ?? false
        return .success(response(isFromProxy: hasPlainProxy && headers.status == 407))
    }

    /// Of a response whose body is not handed over with it: nobody else sees its end. A challenge proves nothing.
    private var wrongProof: TransferFailure? {
        guard isHandedOver || store != nil, ![401, 407].contains(headers.status) else { return nil }
        let fields = headers.fields + headers.trailers
        guard !proofs.allSatisfy({ $0.isRight(fields, isDecoded: isDecoded) }) else { return nil }
        return TransferFailure(
            .malformedResponse,
            "The response of \(request.url.origin.text) ends with a wrong proof that the server knows the password (rspauth). It is not to be trusted. Look at what is between you and the server.",
            cause: .serverProofWrong)
    }

    private var isDecoded: Bool { request.options.decompresses && headers.isCoded }

    private func response(isFromProxy: Bool) -> TransferResponse {
        var response = TransferResponse(
            status: headers.status, httpVersion: easy.httpVersion, headers: headers.fields, body: body)
        response.reason = headers.reason
        response.trailers = headers.trailers
        response.isDecoded = isDecoded
        response.share = share
        response.openBody = store.map { OpenBody(transfer: id, announcedBytes: $0.count) }
        response.isFromProxy = isFromProxy
        response.clientCertificateRequest = originTLS?.certificateRequest
        response.clientCertificate = certificate?.content
        response.serverEndPoint = serverEndPoint
        response.usedKeptConnection = easy.number(CURLINFO_NUM_CONNECTS) == 0
        return response
    }

    /// As the server has announced it, where that says what comes out.
    var announcedBytes: Int? {
        guard !request.options.decompresses || headers.fields.firstValue(of: "Content-Encoding") == nil else {
            return nil
        }
        // RFC 9112 section 6.3: then the length means nothing.
        guard headers.fields.firstValue(of: "Transfer-Encoding") == nil else { return nil }
        return headers.fields.firstValue(of: "Content-Length").flatMap { Int($0) }
    }

    var progress: TransferProgress {
        TransferProgress(
            receivedBytes: bodyBytes, announcedBytes: announcedBytes, sentBytes: easy.offset(CURLINFO_SIZE_UPLOAD_T))
    }

    /// The proxy has answered CONNECT, and not with a tunnel.
    private var isRefusedTunnel: Bool {
        request.isTunnelled && easy.connectStatus != 0 && !(200...299).contains(easy.connectStatus)
    }

    private var refusedTunnel: TransferFailure {
        let origin = request.url.origin
        return TransferFailure(
            .cannotConnect,
            "The proxy does not connect to \(origin.host), port \(origin.port): it answers \(easy.connectStatus).",
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
            ?? TransferFailure(code, for: request, limit: timeLimit, errorText: String(cString: errorText))
        if let facts = originTLS?.refusal {
            failure = TransferFailure(.serverNotTrusted, for: request, facts)
        } else if isAboutClientCertificate(failure.kind) {
            let hasShown = request.clientCertificate != nil
            failure = TransferFailure(
                .tlsFailed,
                hasShown
                    ? "\(request.url.origin.text) does not accept the client certificate."
                    : "\(request.url.origin.text) wants a client certificate.",
                cause: hasShown ? .clientCertificateRefused : .clientCertificateRequired)
        }
        failure.clientCertificateRequest = originTLS?.certificateRequest
        return failure
    }

    /// The server has asked for a certificate and ended the connection over it, which it says with an alert.
    ///
    /// TLS 1.3 does so after the handshake (RFC 8446 section 4.4.2.4), and what is sent by then may destroy the alert on its way.
    /// The loss alone looks like that of a server which has acted on the request: whoever believes that it was about the
    /// certificate may send the request again, so only what is safe to repeat is taken for it.
    private func isAboutClientCertificate(_ kind: TransferFailure.Kind) -> Bool {
        guard let tls = originTLS, tls.certificateRequest != nil, headers.status == 0 else { return false }
        if tls.hasRefusedRequest { return true }
        if let alert = tls.alert { return TransferFailure.certificateAlerts.contains(alert) }
        return kind == .connectionLost && tls.isRefusedLate && request.isSafe
    }

    /// libcurl runs out of memory by its own decision: it has a limit for the length of a header line.
    private var hasBegunToAnswer: Bool { easy.number(CURLINFO_REQUEST_SIZE) > 0 && !headers.isComplete }

    private var longLine: TransferFailure {
        TransferFailure(
            .headersTooLarge,
            "A header line of the response of \(request.url.origin.text) is longer than \(CURL_MAX_HTTP_HEADER) bytes.")
    }

    private func tooSlow(_ limit: LowSpeed) -> TransferFailure {
        TransferFailure(
            .timedOut,
            "The transfer with \(request.url.origin.text) went slower than \(limit.bytesPerSecond) bytes per second for \(limit.seconds) seconds."
        )
    }

    private func channelChanged(_ serverEndPoint: [UInt8]?) -> TransferFailure {
        TransferFailure(
            .tlsFailed,
            "\(request.url.origin.text) shows another certificate on each connection, and a Kerberos login is good for one. Ask whoever runs it, or look at what is between you and the server.",
            cause: .channelChanged(serverEndPoint: serverEndPoint))
    }

    private func stoppedFailure(_ kind: TransferFailure.Kind) -> TransferFailure {
        let isCoding = kind == .malformedResponse && !isUnrequestedSwitch && framingProblem == nil
        return TransferFailure(kind, limitText(kind), wireCause: isCoding ? .badContentCoding : nil)
    }

    private func limitText(_ kind: TransferFailure.Kind) -> String {
        switch kind {
        case .requestBodyIncomplete:
            source?.problem ?? ""
        case .malformedResponse where isUnrequestedSwitch:
            "malformed response from \(request.url.origin.text): 101 Switching Protocols, which was not asked for"
        case .malformedResponse where framingProblem != nil:
            "The response of \(request.url.origin.text) is malformed: \(framingProblem ?? "")."
        case .malformedResponse:
            "The response of \(request.url.origin.text) comes in a content coding that was not asked for."
        case .headersTooLarge:
            "The header of the response of \(request.url.origin.text) is larger than \(EngineLimits.headerBytes) bytes."
        case .quotaExceeded:
            "no room for the body of the response of \(request.url.origin.text): \(store?.shortage?.diskText ?? "")"
        case .outOfMemory:
            "There is no room on the disk for the body of a response of \(request.url.origin.text)."
        default:
            "The response of \(request.url.origin.text) is larger than \(largestBody) bytes."
        }
    }
}

extension TransferFailure {
    /// handshake_failure, bad_certificate to unknown_ca, access_denied, decrypt_error, certificate_required
    /// (RFC 8446 section 6).
    fileprivate static let certificateAlerts: Set<Int> = [40, 42, 43, 44, 45, 46, 48, 49, 51, 116]

    fileprivate init(_ kind: Kind, for request: TransferRequest, _ facts: ServerTrustFacts) {
        let origin = request.url.origin
        let problems = facts.problems.map(\.rawValue).sorted().joined(separator: ", ")
        let reason = problems.isEmpty ? "" : " (\(problems))"
        self.init(kind, "The certificate of \(origin.host), port \(origin.port), is not trusted\(reason).")
        serverTrust = facts
    }
}

extension EasyHandle {
    /// The status of the proxy's answer to CONNECT; 0 when there was none.
    fileprivate var connectStatus: Int { number(CURLINFO_HTTP_CONNECTCODE) }
}
