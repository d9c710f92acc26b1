internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// The header lines of one request as a libcurl list. The caller calls `free` after the transfer.
struct HeaderLines {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    init() {}

    /// The lines for the origin server.
    /// - Parameter login: the value of the `Authorization` field, in place of the request's own.
    /// - Throws: `TransferFailure` of kind `internalError` for a line that contains a line break; the list is freed.
    init(_ request: SharedRequest, hasBody: Bool, login: Secret?) throws(TransferFailure) {
        do throws(TransferFailure) {
            let hasCookies = request.usesCookies && !request.cookies.isEmpty
            for field in request.headers where !(hasCookies && field.isNamed("Cookie")) { try append(field) }
            if let authorization = login ?? request.authorization { try append("Authorization", authorization) }
            // A line without a value removes libcurl's own field. Otherwise libcurl would wait for `100 Continue`, and send the
            // Content-Type of a form with every body.
            if !request.announcesBody || request.options.omittedHeaders.contains("expect") {
                try append(line: "Expect:")
            }
            let hasAccept = request.headers.firstValue(of: "Accept") != nil
            if request.options.omittedHeaders.contains("accept") && !hasAccept { try append(line: "Accept:") }
            // libcurl decodes a body only if it writes this field itself; see `BodyDecoder`.
            if request.options.decompresses && request.headers.firstValue(of: "Accept-Encoding") == nil {
                try append(line: "Accept-Encoding: ", ResponseHeaders.codings.joined(separator: ", "))
            }
            // Otherwise libcurl would send the bytes of another protocol in chunks.
            if request.options.switchesProtocol { try append(line: "Transfer-Encoding:") }
            if hasBody && request.headers.firstValue(of: "Content-Type") == nil { try append(line: "Content-Type:") }
        } catch {
            free()
            throw error
        }
    }

    /// Makes libcurl send the body without asking the server before.
    mutating func dropExpectation() throws(TransferFailure) { try append(line: "Expect:") }

    /// The lines for the proxy only.
    init(_ proxy: ProxyRequest?, login: Secret?) throws(TransferFailure) {
        guard let authorization = login ?? proxy?.authorization, proxy?.kind != .socks5h else { return }
        try append("Proxy-Authorization", authorization)
    }

    mutating func free() {
        curl_slist_free_all(list)
        list = nil
    }

    /// libcurl sends a field with an empty value only if the line ends with a semicolon (CURLOPT_HTTPHEADER(3)).
    private mutating func append(_ field: HeaderField) throws(TransferFailure) {
        try append(line: field.name, field.value.isEmpty ? ";" : ": ", field.value)
    }

    /// Appends a line of up to three parts.
    private mutating func append(
        line first: String, _ second: String = "", _ third: String = ""
    ) throws(TransferFailure) {
        let longest = first.utf8.count + second.utf8.count + third.utf8.count
        let appended = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: longest + 1) { buffer in
            var line = TextWriter(buffer)
            line.write(first)
            line.write(second)
            line.write(header: third)
            let isClean = !line.written.contains(where: Self.breaksLine)
            line.write("\0")
            return Result { () throws(TransferFailure) in
                try append(UnsafeRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self), isClean: isClean)
            }
        }
        try appended.get()
    }

    /// Assembles the line in memory that is wiped; libcurl copies it to its own memory, which is also wiped.
    private mutating func append(_ name: String, _ value: Secret) throws(TransferFailure) {
        let isClean = value.withUnsafeBytes { !$0.contains { Self.breaksLine($0) } }
        guard isClean else { throw Self.brokenLine }
        try value.withTerminatedBytes(after: "\(name): ") { line throws(TransferFailure) in
            try append(line, isClean: true)
        }
    }

    private mutating func append(_ line: UnsafePointer<CChar>?, isClean: Bool) throws(TransferFailure) {
        guard isClean else { throw Self.brokenLine }
        guard let longer = curl_slist_append(list, line) else {
            throw TransferFailure(.outOfMemory, "out of memory for a header line")
        }
        list = longer
    }

    private static var brokenLine: TransferFailure {
        TransferFailure(.internalError, "line break or NUL in a header line")
    }

    private static func breaksLine(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }
}
