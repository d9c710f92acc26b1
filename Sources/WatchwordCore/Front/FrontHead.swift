internal import WatchwordProtocol

/// Builds a `FrontRequest` from the lines of its head.
struct FrontHead {
    private let line: FrontRequestLine
    private var fields: [HeaderField] = []
    private var authorization: Secret?
    private var proxyAuthorization: Secret?
    private var fieldCount = 0
    /// The size of the lines so far.
    private(set) var byteCount: Int

    init(_ line: UnsafeRawBufferPointer, byteCount: Int) throws(FrontRefusal) {
        self.line = try FrontRequestLine(line)
        self.byteCount = byteCount
        fields.reserveCapacity(16)
    }

    mutating func add(_ line: UnsafeRawBufferPointer, byteCount: Int, _ limits: FrontLimits) throws(FrontRefusal) {
        self.byteCount += byteCount
        fieldCount += 1
        guard fieldCount <= limits.fields else { throw .fieldCount }
        let field = try FrontFieldLine(line)
        if field.name.equalsIgnoringASCIICase("Authorization") {
            guard authorization == nil else { throw .twoCredentials }
            authorization = Secret(copying: field.valueBytes)
        } else if field.name.equalsIgnoringASCIICase("Proxy-Authorization") {
            guard proxyAuthorization == nil else { throw .twoCredentials }
            proxyAuthorization = Secret(copying: field.valueBytes)
        } else {
            fields.append(field.field)
        }
    }

    func request() throws(FrontRefusal) -> FrontRequest {
        let host = try checkedHost()
        let body = try framing()
        let expectations = line.minorVersion == 1 ? fields.elements(of: "Expect") : []
        guard expectations.allSatisfy({ $0.equalsIgnoringASCIICase("100-continue") }) else { throw .expectation }
        // After a body, the bytes of the other protocol would have no certain beginning.
        let mayUpgrade = line.minorVersion == 1 && body == .none && fields.hasElement("upgrade", of: "Connection")
        // Another protocol, such as HTTP/2, could carry requests that no front checks; a server may ignore `Upgrade`.
        let upgrade = fields.elements(of: "Upgrade").first { FrontRequest.isPassedOn(protocol: $0) }
        return FrontRequest(
            method: line.method, target: line.target, minorVersion: line.minorVersion, headers: fields,
            authorization: authorization, proxyAuthorization: proxyAuthorization, body: body, keepsAlive: keepsAlive,
            expectsContinue: !expectations.isEmpty && body != .none,
            upgrade: mayUpgrade ? upgrade : nil, host: host)
    }

    /// RFC 9112 section 9.3: a proxy closes the connections of HTTP/1.0.
    private var keepsAlive: Bool {
        guard !fields.hasElement("close", of: "Connection") else { return false }
        return line.minorVersion == 1 || !line.target.isForProxy && fields.hasElement("keep-alive", of: "Connection")
    }

    /// RFC 9112 section 3.2: one `Host` in HTTP/1.1, and never two.
    private func checkedHost() throws(FrontRefusal) -> String? {
        let hosts = fields.values(of: "Host")
        guard hosts.count <= 1 else { throw .host }
        guard let host = hosts.first else {
            guard line.minorVersion == 0 else { throw .host }
            return nil
        }
        guard host.isEmpty || (try? Origin(scheme: .http, authority: host)) != nil else { throw .host }
        return host
    }

    /// RFC 9112 section 6.3, without its lenient parts: an ambiguous length would let one server see another request than
    /// the other.
    private func framing() throws(FrontRefusal) -> FrontRequest.Body {
        let lengths = fields.values(of: "Content-Length")
        let codings = fields.values(of: "Transfer-Encoding")
        guard codings.isEmpty || lengths.isEmpty else { throw .bothLengths }  // guard: front-both-lengths
        guard lengths.count <= 1 else { throw .length }  // guard: front-two-lengths
        guard codings.isEmpty || line.minorVersion == 1 else { throw .codingOfOldVersion }
        guard codings.isEmpty || codings.count == 1 && codings[0].equalsIgnoringASCIICase("chunked") else {
            throw .coding  // guard: front-coding
        }
        let length = try lengths.first.map(Self.length)
        guard line.method != "CONNECT" || codings.isEmpty && length ?? 0 == 0 else { throw .connectBody }
        guard codings.isEmpty else { return .chunked }
        return length.flatMap { $0 > 0 ? .sized($0) : nil } ?? .none
    }

    private static func length(_ text: String) throws(FrontRefusal) -> Int {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { throw .length }
        guard let length = Int(text), length <= Limits.bodyBytes else { throw .bodySize }
        return length
    }
}
