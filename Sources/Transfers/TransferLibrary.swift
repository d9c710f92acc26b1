internal import CCurl
public import WatchwordCore

/// The process-wide state of libcurl.
public enum TransferLibrary {
    private static let status = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// Initializes libcurl. Further calls do nothing. What libcurl frees is wiped by the program (`CWipingHeap`).
    ///
    /// The environment must be cleaned before the call: libcurl and OpenSSL read proxies, key logs and certificate paths from
    /// it. The process must ignore SIGPIPE.
    /// - Throws: `TransferFailure` of kind `internalError`.
    public static func initialize() throws(TransferFailure) {
        guard status == CURLE_OK else {
            throw TransferFailure(.internalError, "cannot initialize libcurl: \(description(of: status))")
        }
    }

    /// libcurl's version and TLS library, for display. Does not call `curl_version`, which initializes OpenLDAP and SASL with
    /// all modules.
    static let version: String = {
        let facts = curl_version_info(CURLVERSION_FIRST)?.pointee
        let parts = [
            facts?.version.map { "libcurl/" + String(cString: $0) }, facts?.ssl_version.map { String(cString: $0) },
        ]
        return parts.compactMap(\.self).joined(separator: " ")
    }()

    static func description(of code: CURLcode) -> String { String(cString: curl_easy_strerror(code)) }
}
