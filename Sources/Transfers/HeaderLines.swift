internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// The header lines of one request, in libcurl's own list. Whoever made it frees it, after the transfer.
struct HeaderLines {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// None.
    init() {}

    /// - Throws: `TransferFailure` of kind `internalError` for a line that would be two; what was added is freed.
    /// - Parameter login: for the value of the `Authorization` field, in place of the request's own.
    init(_ request: TransferRequest, hasBody: Bool, login: Secret?) throws(TransferFailure) {
        do throws(TransferFailure) {
            for field in request.headers { try append(field) }
            if let authorization = login ?? request.authorization { try append("Authorization", authorization) }
            // Without these two libcurl would wait for `100 Continue`, and call every body a form.
            if !request.announcesBody || request.options.omittedHeaders.contains("expect") {
                try append(line: "Expect:")
            }
            let hasAccept = request.headers.firstValue(of: "Accept") != nil
            if request.options.omittedHeaders.contains("accept") && !hasAccept { try append(line: "Accept:") }
            if hasBody && request.headers.firstValue(of: "Content-Type") == nil { try append(line: "Content-Type:") }
        } catch {
            free()
            throw error
        }
    }

    /// The lines that are for the proxy only.
    init(_ proxy: ProxyRequest?, login: Secret?) throws(TransferFailure) {
        guard let authorization = login ?? proxy?.authorization, proxy?.kind != .socks5h else { return }
        try append("Proxy-Authorization", authorization)
    }

    mutating func free() {
        curl_slist_free_all(list)
        list = nil
    }

    /// libcurl sends a field without value only when it is written with a semicolon (CURLOPT_HTTPHEADER(3)).
    private mutating func append(_ field: HeaderField) throws(TransferFailure) {
        try append(line: field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }

    private mutating func append(line: String) throws(TransferFailure) {
        try append(line, isClean: !line.utf8.contains { Self.breaksLine($0) })
    }

    /// The line is put together in memory that is wiped; libcurl copies it into memory of its own, wiped as well.
    private mutating func append(_ name: String, _ value: Secret) throws(TransferFailure) {
        let isClean = value.withUnsafeBytes { !$0.contains { Self.breaksLine($0) } }
        guard isClean else { throw Self.brokenLine }
        try value.withTerminatedBytes(after: "\(name): ") { line throws(TransferFailure) in
            try append(line, isClean: true)
        }
    }

    private mutating func append(_ line: UnsafePointer<CChar>, isClean: Bool) throws(TransferFailure) {
        guard isClean else { throw Self.brokenLine }
        guard let longer = curl_slist_append(list, line) else {
            throw TransferFailure(.outOfMemory, "No memory for a header line.")
        }
        list = longer
    }

    private static var brokenLine: TransferFailure {
        TransferFailure(.internalError, "A header line holds a line break.")
    }

    private static func breaksLine(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }
}
