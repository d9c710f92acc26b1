public import WatchwordProtocol

/// The header fields that a front passes on in both directions, as an intermediary has to (RFC 9110 section 7.6).
public struct FrontFields: Sendable {
    private let key: String
    private let makeNonce: @Sendable () -> String

    /// - Parameters:
    ///   - key: random text of this front, by which it recognizes its own requests.
    ///   - makeNonce: returns 16 random hexadecimal digits.
    public init(
        key: String, makeNonce: @escaping @Sendable () -> String = { String(RandomText.make128Bits().prefix(16)) }
    ) {
        (self.key, self.makeNonce) = (key, makeNonce)
    }

    /// The fields that apply to one connection only (RFC 9110 section 7.6.1).
    private static let hopByHop: FieldNames = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// Further fields that the broker sets in a request, because they determine its target, framing or credentials.
    private static let setByBroker: FieldNames = [
        "authorization", "content-length", "cookie2", "expect", "host", "http2-settings",
    ]

    private static let setByFront: FieldNames = ["content-length"]

    /// Returns the fields of the request for a fetch, with `Via` at the end.
    /// - Throws: `FrontRefusal` with status 508 if the request has passed this front already, and the response of the front itself if
    ///   `Max-Forwards` ends here.
    public func request(_ request: FrontRequest) throws(FrontRefusal) -> [HeaderField] {
        guard !hasPassed(request.headers) else {
            throw FrontRefusal(
                508, "loop", "the request has passed this proxy already; remove the proxy from its own upstream route")
        }
        var fields = forwarded(request.headers, without: Self.setByBroker)
        if let left = try Self.forwardsLeft(of: request) {
            fields.removeAll { $0.isNamed("Max-Forwards") }
            fields.append(HeaderField("Max-Forwards", String(left)))
        }
        fields.append(via(minorVersion: request.minorVersion))
        return fields
    }

    /// Returns how many intermediaries may still pass on the request; `nil` if it does not limit them (RFC 9110 section 7.6.2).
    private static func forwardsLeft(of request: FrontRequest) throws(FrontRefusal) -> Int? {
        let values = request.headers.values(of: "Max-Forwards")
        guard request.method == "OPTIONS", let value = values.first else { return nil }
        guard values.count == 1, !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .maxForwards
        }
        let count = Int(value) ?? .max
        guard count > 0 else { throw .lastRecipient }
        return count - 1
    }

    /// Returns the fields of the origin's response for the program, with `Date`, if it is missing, and `Via` at the end. The front
    /// adds the framing.
    /// - Parameter sinceEpoch: the time (RFC 9110 section 6.6.1).
    /// - Throws: `FrontRefusal` with status 502 if the origin demands a login to a proxy: a program would answer with the
    ///   token of the front.
    public func response(
        status: Int, _ headers: HeaderBlock, to request: FrontRequest, at sinceEpoch: Duration
    ) throws(FrontRefusal) -> [HeaderField] {
        let headers = Array(headers)
        // guard: front-407-of-origin
        guard status != 407 else {
            throw FrontRefusal(
                502, "407-of-origin", "the server sent status 407, which only a proxy may send; check its address")
        }
        // guard: front-other-protocol
        guard status != 101 || headers.elements(of: "Upgrade").allSatisfy(FrontRequest.isPassedOn) else {
            throw FrontRefusal(
                502, "other-protocol", "the server switched to a protocol that was not requested; check its address")
        }
        var fields = forwarded(headers, without: Self.setByFront)
        if request.acceptsTrailers { fields += headers.filter { $0.isNamed("Trailer") } }
        if status >= 200, fields.firstValue(of: "Date") == nil {
            fields.append(HeaderField("Date", HTTPDate.text(sinceEpoch)))
        }
        fields.append(via(minorVersion: 1))
        return fields
    }

    /// Returns the trailers of the origin's response for the program; none unless it accepts them.
    public static func trailers(_ trailers: HeaderBlock, to request: FrontRequest) -> [HeaderField] {
        guard request.acceptsTrailers else { return [] }
        return trailers.filter { FrontTrailers.allows($0.name) }
    }

    private func via(minorVersion: Int) -> HeaderField {
        HeaderField("Via", "1.\(minorVersion) \(pseudonym(makeNonce()))")
    }

    private static let prefix = "watchword-"

    /// Returns the name of this front in one message: a random number and its hash with the key. A name that is the same in all
    /// messages would let servers recognize the user.
    func pseudonym(_ nonce: some StringProtocol) -> String {
        let hash = Array("\(key)\(nonce)".utf8).withUnsafeBytes(OAuthText.sha256)
        return "\(Self.prefix)\(nonce)\(Hexadecimal.text(hash.prefix(8)))"
    }

    /// Whether an element of `Via` has a name of this front as its second word (RFC 9110 section 7.6.3).
    private func hasPassed(_ headers: [HeaderField]) -> Bool {
        headers.elements(of: "Via").contains { element in
            let words = element.utf8.split { $0 == 0x20 || $0 == 0x09 }
            guard words.count >= 2 else { return false }
            let word = ExactText(String(Substring(words[1]))).asciiLowercased.string
            guard word.hasPrefix(Self.prefix), word.utf8.count == Self.prefix.utf8.count + 32 else { return false }
            return word == pseudonym(word.dropFirst(Self.prefix.count).prefix(16))
        }
    }

    private func forwarded(_ headers: [HeaderField], without others: FieldNames) -> [HeaderField] {
        let named = FieldNames(headers.elements(of: "Connection"))
        var fields: [HeaderField] = []
        fields.reserveCapacity(headers.count + 1)
        for field in headers {
            let name = field.name
            let isForwarded =
                !Self.hopByHop.contains(name)  // guard: front-hop-by-hop
                && !named.contains(name)
                && !name.hasPrefix(ignoringASCIICase: "proxy-")  // guard: front-fields-for-proxies
                && !others.contains(name)
            if isForwarded { fields.append(field) }
        }
        return fields
    }
}

/// One line of a header section, without its line end (RFC 9112 section 5).
struct FrontFieldLine {
    let name: String
    /// The value without surrounding white space; valid only as long as the bytes of the line.
    let valueBytes: UnsafeRawBufferPointer

    init(_ line: UnsafeRawBufferPointer) throws(FrontRefusal) {
        guard let first = line.first, !Self.isBlank(first) else { throw .fold }  // guard: front-fold
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .fieldName }
        let nameBytes = line[..<colon]
        // guard: front-field-name
        guard !nameBytes.isEmpty, nameBytes.allSatisfy(\.isTokenCharacter) else { throw .fieldName }
        var (start, end) = (colon + 1, line.count)
        while start < end, Self.isBlank(line[start]) { start += 1 }
        while start < end, Self.isBlank(line[end - 1]) { end -= 1 }
        valueBytes = UnsafeRawBufferPointer(rebasing: line[start..<end])
        guard valueBytes.allSatisfy(\.isFieldCharacter) else { throw .fieldValue }
        name = String(decoding: nameBytes, as: UTF8.self)
    }

    /// Not for a field with a credential, whose value must not become a `String`.
    var field: HeaderField { HeaderField(name, String(header: valueBytes)) }

    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
