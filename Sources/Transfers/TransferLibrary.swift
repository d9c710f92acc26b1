internal import CCurl
public import WatchwordCore

/// libcurl as a whole.
public enum TransferLibrary {
    private static let status = watchword_curl_global_init_wiping()

    /// Makes libcurl ready, with allocators that wipe what they free. Once is enough; more calls do nothing.
    ///
    /// The environment must be clean by then: libcurl and OpenSSL read proxies, key logs and certificate paths from it. The
    /// process must ignore SIGPIPE.
    /// - Throws: `TransferFailure` of kind `internalError`.
    public static func initialize() throws(TransferFailure) {
        guard status == CURLE_OK else {
            throw TransferFailure(.internalError, "libcurl cannot start: \(description(of: status)).")
        }
    }

    /// Name, version and TLS library, for people.
    static let version = String(cString: curl_version())

    static func description(of code: CURLcode) -> String { String(cString: curl_easy_strerror(code)) }
}
