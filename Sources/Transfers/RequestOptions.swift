internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension EasyHandle {
    /// Everything that a request decides, and everything that libcurl would otherwise decide by itself.
    func apply(_ request: TransferRequest, hasBody: Bool, caFile: String?) throws(TransferFailure) {
        try restrict(proxy: request.proxy)
        try secure(caFile: caFile)
        try set(CURLOPT_URL, request.url.text)
        try set(CURLOPT_TIMEOUT_MS, max(1, request.timeout.wholeMilliseconds))
        try set(CURLOPT_CONNECTTIMEOUT_MS, EngineLimits.connectMilliseconds)
        if request.headers.firstValue(of: "User-Agent") == nil { try set(CURLOPT_USERAGENT, "watchword") }
        if hasBody { try setBody(request.body ?? []) }
        if request.method == "HEAD" {
            try set(CURLOPT_NOBODY, true)
        } else if request.method != "GET" || hasBody {
            try set(CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    /// The broker decides where a request goes, what it carries and what follows; libcurl carries it there.
    private func restrict(proxy: String?) throws(TransferFailure) {
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        // An empty list is refused; nothing is followed anyway.
        try set(CURLOPT_REDIR_PROTOCOLS_STR, "https")
        try set(CURLOPT_FOLLOWLOCATION, false)
        try set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        // Set even when empty: else the environment's proxies count.
        try set(CURLOPT_PROXY, proxy ?? "")
        try set(CURLOPT_NOPROXY, proxy == nil ? "*" : "")
        try set(CURLOPT_HTTPAUTH, 0)
        try set(CURLOPT_PROXYAUTH, 0)
        try set(CURLOPT_UNRESTRICTED_AUTH, false)
        try set(CURLOPT_DISALLOW_USERNAME_IN_URL, true)
        // The URL is canonical already, and Digest signs the request target byte for byte.
        try set(CURLOPT_PATH_AS_IS, true)
        try set(CURLOPT_NOSIGNAL, true)
        try set(CURLOPT_TCP_NODELAY, true)
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        try set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        try set(CURLOPT_MAXLIFETIME_CONN, EngineLimits.connectionLifetime)
        try setCloseOnExec()
    }

    private func secure(caFile: String?) throws(TransferFailure) {
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_SSL_VERIFYPEER, true)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        if let caFile {
            try set(CURLOPT_CAINFO, caFile)
            try set(CURLOPT_CAPATH, String?.none)
        }
    }
}
