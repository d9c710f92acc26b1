internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// The header lines of one request, in libcurl's own list. Whoever made it frees it, after the transfer.
struct HeaderLines {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// - Throws: `TransferFailure` of kind `internalError` for a line that would be two; what was added is freed.
    init(_ request: TransferRequest, hasBody: Bool) throws(TransferFailure) {
        do throws(TransferFailure) {
            for field in request.headers { try append(field) }
            if let authorization = request.authorization { try appendAuthorization(authorization) }
            // Without these two libcurl would wait for `100 Continue`, and call every body a form.
            try append(line: "Expect:")
            if hasBody && request.headers.firstValue(of: "Content-Type") == nil { try append(line: "Content-Type:") }
        } catch {
            free()
            throw error
        }
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
    private mutating func appendAuthorization(_ value: Secret) throws(TransferFailure) {
        let prefix = Array("Authorization: ".utf8)
        let line = Secret(capacity: prefix.count + value.count + 1) { destination in
            destination.copyBytes(from: prefix)
            value.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: destination[prefix.count...]).copyMemory(from: $0)
            }
            return prefix.count + value.count + 1
        }
        try line.withUnsafeBytes { bytes throws(TransferFailure) in
            guard let start = bytes.baseAddress else { return }
            try append(
                start.assumingMemoryBound(to: CChar.self), isClean: !bytes.dropLast().contains { Self.breaksLine($0) })
        }
    }

    private mutating func append(_ line: UnsafePointer<CChar>, isClean: Bool) throws(TransferFailure) {
        guard isClean else { throw TransferFailure(.internalError, "A header line holds a line break.") }
        guard let longer = curl_slist_append(list, line) else {
            throw TransferFailure(.outOfMemory, "No memory for a header line.")
        }
        list = longer
    }

    private static func breaksLine(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }
}
