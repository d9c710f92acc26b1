internal import WatchwordCore
internal import WatchwordProtocol

/// The header sections of one transfer. The sections of a proxy that opens a tunnel come before the sections of the
/// origin.
struct ResponseHead {
    private(set) var headers = ResponseHeaders()
    private(set) var ntlm: NTLMWatch
    /// Whether the header section is from the origin, or from a proxy that opens no tunnel.
    private(set) var isFinalPeer: Bool
    /// See `TransferOptions.switchesProtocol`.
    private let switchesProtocol: Bool
    /// The responses with status 417. After the first one on a connection that stays open, libcurl repeats the request itself.
    private(set) var refusedExpectations = 0
    /// A lower bound of the bytes that libcurl has read from the body of a refused CONNECT.
    private var refusalBytes = 0

    init(_ request: SharedRequest) {
        ntlm = NTLMWatch(request)
        isFinalPeer = !request.isTunnelled
        switchesProtocol = request.options.switchesProtocol
    }

    /// Called when the tunnel is open: the following header sections are the origin's.
    mutating func beginOrigin() {
        isFinalPeer = true
        headers = ResponseHeaders()
    }

    /// Whether this is a response to CONNECT that another one follows (RFC 9110 section 15.2).
    var isInterimOfTunnel: Bool { !isFinalPeer && (100...199).contains(headers.status) }

    /// Called when libcurl has read the status line of the response to CONNECT that follows an interim one.
    mutating func beginTunnelResponse(status: Int) {
        headers = ResponseHeaders()
        _ = Array("HTTP/1.1 \(status)\r\n".utf8).withUnsafeBytes { headers.append($0) }
    }

    /// Called when the transfer uses an existing connection to the origin.
    mutating func recordOrigin() { isFinalPeer = true }

    enum Appended {
        /// The line is within a section, and decides nothing.
        case field
        /// The line is a status line, or the last one of a section.
        case edge
        /// The section is too large.
        case tooLarge
        /// libcurl must not continue.
        case refused
    }

    /// Adds one line, which includes its line end.
    mutating func append(_ line: UnsafeRawBufferPointer) -> Appended {
        refusalBytes = 0
        guard headers.append(line) else { return .tooLarge }
        guard ntlm.receive(line, of: headers) else { return .refused }  // guard: ntlm-challenge-is-looked-at
        guard headers.isAtStart || headers.isComplete else { return .field }
        if headers.isComplete && headers.status == 417 && isFinalPeer { refusedExpectations += 1 }
        return .edge
    }

    /// Records that libcurl opens a connection, and returns whether it may.
    mutating func mayConnect() -> Bool { ntlm.connect() }

    /// Counts a byte of the body of a refused CONNECT, and returns whether libcurl may continue to read it.
    mutating func passesRefusalByte() -> Bool {
        guard headers.isComplete, !isFinalPeer else { return true }
        refusalBytes += 1
        return refusalBytes <= EngineLimits.refusedTunnelBodyBytes
    }

    /// Whether this is the response to deliver, whose body may be streamed: not a challenge, not a redirect, and not a 417,
    /// after which libcurl sends the request again without `Expect`.
    func isFinal(for request: SharedRequest) -> Bool {
        guard request.options.delivery != .whole, headers.isComplete, headers.status >= 200 || isSwitch else {
            return false
        }
        guard isFinalPeer, !isInBetween, !(headers.status == 417 && request.announcesBody) else { return false }
        // The body must not be used before its proof was checked, and the login not be stored.
        return !request.proofs.contains { $0.coversBody(headers.fields) } || isTooLargeForProof
    }

    /// Whether the response has announced a body that cannot be delivered complete.
    private var isTooLargeForProof: Bool {
        headers.fields.firstValue(of: "Content-Length").flatMap { Int($0) } ?? 0 > EngineLimits.wholeBodyBytes
    }

    /// Whether the response may lead to another request; then its body does not matter. libcurl continues a login by NTLM itself.
    var isIntermediate: Bool {
        headers.isComplete && isInBetween && isFinalPeer && ntlm.endOfTransfer.map { $0.reason == .refused } ?? true
    }

    /// Whether the response is a challenge or a redirect.
    var isInBetween: Bool { [401, 407].contains(headers.status) || (300...399).contains(headers.status) }

    /// Whether the origin, or a proxy in its place, switches to another protocol (RFC 9110 section 15.2.2). The following bytes
    /// are not HTTP, and the connection cannot be used again.
    var isSwitch: Bool { headers.status == 101 && isFinalPeer }

    /// Whether it does so although the request has not asked for it.
    var isUnrequestedSwitch: Bool { isSwitch && !switchesProtocol }  // guard: unrequested-switch

    /// The complete interim response of the origin that is to be passed on: not 100, which concerns the body of the request, and
    /// not 101 (RFC 9110 section 15.2).
    var interim: TransferResponse? {
        guard headers.isComplete, isFinalPeer, (102...199).contains(headers.status) else { return nil }
        var response = TransferResponse(status: headers.status, headers: headers.fields)
        response.reason = headers.reason
        return response
    }

    /// Why the complete header section of the origin is malformed; `nil` if it is not.
    var framingProblem: String? {
        headers.isComplete && headers.status >= 200 && isFinalPeer ? headers.problem : nil
    }

    /// Whether the response to `method` has a body (RFC 9110 section 6.4.1).
    func hasBody(for method: String) -> Bool {
        headers.isComplete && headers.status >= 200 && ![204, 304].contains(headers.status) && method != "HEAD"
    }

    /// Whether the response makes libcurl stop sending the request's body.
    var isRefusal: Bool { headers.isComplete && headers.status >= 300 || hasNotSwitched }

    /// Whether the response answers a request in place of the switch to another protocol, in which the request has no body.
    var hasNotSwitched: Bool { switchesProtocol && headers.isComplete && headers.status >= 200 && isFinalPeer }
}
