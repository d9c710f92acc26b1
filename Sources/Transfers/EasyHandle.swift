internal import CCurl
internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// A libcurl easy handle, used for one transfer only. The caller closes it.
struct EasyHandle {
    let pointer: UnsafeMutableRawPointer

    init(pointer: UnsafeMutableRawPointer) { self.pointer = pointer }

    static func make() throws(TransferFailure) -> EasyHandle { try EasyHandle(curl_easy_init()) }

    /// Returns a new handle with the same options, and without the state of any transfer.
    func duplicate() throws(TransferFailure) -> EasyHandle { try EasyHandle(curl_easy_duphandle(pointer)) }

    private init(_ made: UnsafeMutableRawPointer?) throws(TransferFailure) {
        guard let made else { throw TransferFailure(.outOfMemory, "out of memory for a transfer") }
        pointer = made
    }

    func close() { curl_easy_cleanup(pointer) }

    func set(_ option: CURLoption, _ value: Int) throws(TransferFailure) {
        try check(watchword_curl_easy_set_long(pointer, option, value), option)
    }

    func set(_ option: CURLoption, offset value: Int) throws(TransferFailure) {
        try check(watchword_curl_easy_set_offset(pointer, option, curl_off_t(value)), option)
    }

    func set(_ option: CURLoption, _ value: Bool) throws(TransferFailure) { try set(option, value ? 1 : 0) }

    /// libcurl copies the text. `nil` clears the option, including its default.
    func set(_ option: CURLoption, _ value: String?) throws(TransferFailure) {
        try check(watchword_curl_easy_set_string(pointer, option, value), option)
    }

    /// libcurl copies the bytes into memory that is wiped.
    func set(_ option: CURLoption, _ value: Secret) throws(TransferFailure) {
        try value.withTerminatedBytes { text throws(TransferFailure) in
            try check(watchword_curl_easy_set_string(pointer, option, text), option)
        }
    }

    /// `value` must live as long as the handle.
    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) throws(TransferFailure) {
        try check(watchword_curl_easy_set_pointer(pointer, option, value), option)
    }

    /// `value` must live as long as the handle.
    func set(_ option: CURLoption, _ value: HeaderLines) throws(TransferFailure) {
        try check(watchword_curl_easy_set_list(pointer, option, value.list), option)
    }

    func set(_ option: CURLoption, _ value: watchword_curl_data_function) throws(TransferFailure) {
        try check(watchword_curl_easy_set_data_function(pointer, option, value), option)
    }

    /// libcurl calls `function` with the OpenSSL context of every new connection, before the handshake.
    func set(context function: curl_ssl_ctx_callback) throws(TransferFailure) {
        try check(watchword_curl_easy_set_context_function(pointer, function), CURLOPT_SSL_CTX_FUNCTION)
    }

    /// `user` must live as long as the handle.
    func set(progress function: curl_xferinfo_callback, _ user: UnsafeMutableRawPointer) throws(TransferFailure) {
        try check(watchword_curl_easy_set_progress_function(pointer, function, user), CURLOPT_XFERINFOFUNCTION)
    }

    /// `user` must live as long as the handle.
    func set(seek function: curl_seek_callback, _ user: UnsafeMutableRawPointer) throws(TransferFailure) {
        try check(watchword_curl_easy_set_seek_function(pointer, function, user), CURLOPT_SEEKFUNCTION)
    }

    /// Makes libcurl get the request's body from the read callback.
    func setStreamedBody(size: Int?, bufferBytes: Int) throws(TransferFailure) {
        try set(CURLOPT_UPLOAD, true)
        try set(CURLOPT_INFILESIZE_LARGE, offset: size ?? -1)
        try set(CURLOPT_UPLOAD_BUFFERSIZE, bufferBytes)
    }

    /// libcurl copies the bytes.
    func setBody(_ bytes: [UInt8]) throws(TransferFailure) {
        try check(
            watchword_curl_easy_set_offset(pointer, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count)),
            CURLOPT_POSTFIELDSIZE_LARGE)
        // libcurl interprets a null pointer as no body.
        let code = (bytes.isEmpty ? [0] : bytes).withUnsafeBytes { bytes in
            watchword_curl_easy_set_pointer(
                pointer, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress))
        }
        try check(code, CURLOPT_COPYPOSTFIELDS)
    }

    /// libcurl calls `function` before every request, on a new or an old connection.
    func set(request function: curl_prereq_callback) throws(TransferFailure) {
        try check(watchword_curl_easy_set_request_function(pointer, function), CURLOPT_PREREQFUNCTION)
    }

    /// `function` closes every socket of a connection that the transfer opens.
    func set(closing function: curl_closesocket_callback) throws(TransferFailure) {
        try check(watchword_curl_easy_set_closing_function(pointer, function), CURLOPT_CLOSESOCKETFUNCTION)
    }

    /// libcurl calls `function` with its reports, and with what it receives and sends, while CURLOPT_VERBOSE is set.
    func set(report function: curl_debug_callback) throws(TransferFailure) {
        try check(watchword_curl_easy_set_report_function(pointer, function), CURLOPT_DEBUGFUNCTION)
    }

    /// `function` opens every socket of the transfer.
    func set(socket function: curl_opensocket_callback) throws(TransferFailure) {
        try check(watchword_curl_easy_set_socket_function(pointer, function), CURLOPT_OPENSOCKETFUNCTION)
    }

    /// Resumes a transfer that a callback paused. The callback may be called before this returns.
    func resume() -> CURLcode { curl_easy_pause(pointer, CURLPAUSE_CONT) }

    func number(_ info: CURLINFO) -> Int {
        var value = 0
        return watchword_curl_easy_get_long(pointer, info, &value) == CURLE_OK ? value : 0
    }

    /// A value in bytes; 0 if libcurl does not know it.
    func offset(_ info: CURLINFO) -> Int {
        var value: curl_off_t = 0
        return watchword_curl_easy_get_offset(pointer, info, &value) == CURLE_OK ? Int(value) : 0
    }

    /// The contents of the cookie engine, as lines in Netscape's format. At most `limit` of them.
    func cookies(limit: Int) -> [Secret] {
        var value: UnsafeMutableRawPointer?
        guard watchword_curl_easy_get_pointer(pointer, CURLINFO_COOKIELIST, &value) == CURLE_OK else { return [] }
        let list = value?.assumingMemoryBound(to: curl_slist.self)
        defer { curl_slist_free_all(list) }
        return sequence(first: list) { $0?.pointee.next }.prefix { $0 != nil }.prefix(limit).compactMap { node in
            (node?.pointee.data).map { Secret(copying: UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
        }
    }

    /// The socket of the finished transfer; -1 if it is closed.
    var activeSocket: Int32 { watchword_curl_easy_get_socket(pointer) }

    /// The value of `CURLOPT_PRIVATE`.
    var owner: UnsafeMutableRawPointer? {
        var value: UnsafeMutableRawPointer?
        return watchword_curl_easy_get_pointer(pointer, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : nil
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(TransferFailure) {
        guard code == CURLE_OK else {
            throw TransferFailure(
                code == CURLE_OUT_OF_MEMORY ? .outOfMemory : .internalError,
                "libcurl rejects option \(option.rawValue): \(TransferLibrary.description(of: code))")
        }
    }
}

extension Secret {
    /// Calls `body` with a copy that ends with a NUL byte, and wipes the copy.
    /// - Throws: `TransferFailure` of kind `internalError` if the secret contains a NUL byte.
    func withTerminatedBytes<Value>(
        after prefix: String = "", _ body: (UnsafePointer<CChar>) throws(TransferFailure) -> Value
    ) throws(TransferFailure) -> Value {
        let copy = Secret(joining: [.text(prefix), .secret(self), .text("\0")])
        return try copy.withUnsafeBytes { bytes throws(TransferFailure) in
            guard let base = bytes.baseAddress, !bytes.dropLast().contains(0) else {
                throw TransferFailure(.internalError, "NUL byte in a secret")
            }
            return try body(base.assumingMemoryBound(to: CChar.self))
        }
    }
}

extension EasyHandle {
    var httpVersion: String {
        switch number(CURLINFO_HTTP_VERSION) {
        case Int(CURL_HTTP_VERSION_1_0): "1.0"
        case Int(CURL_HTTP_VERSION_2_0): "2"
        default: "1.1"
        }
    }
}
