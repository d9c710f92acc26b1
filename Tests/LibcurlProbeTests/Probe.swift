import CCurl
import Glibc
import Synchronization
import TestSystemCalls

/// One transfer by libcurl alone, with the defaults of libcurl and the options of a test.
final class Probe {
    let easy: UnsafeMutableRawPointer
    /// The number of OpenSSL contexts that libcurl has provided.
    private(set) var contexts = 0
    /// Configures each new `SSL_CTX`.
    var prepare: (OpaquePointer) -> Void = { _ in }

    init(_ url: String) {
        precondition(Self.isReady)
        easy = curl_easy_init()
        set(CURLOPT_URL, url)
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_TIMEOUT_MS, 20_000)
        _ = watchword_curl_easy_set_data_function(easy, CURLOPT_WRITEFUNCTION) { _, _, count, _ in count }
    }

    // libcurl is initialized once for the process, by the first probe.
    private static let isReady =
        curl_global_init_mem(
            Int(CURL_GLOBAL_DEFAULT), malloc, watchword_test_free_wiping, watchword_test_realloc_wiping,
            { $0.flatMap { strdup($0) } }, calloc)
        == CURLE_OK

    deinit { curl_easy_cleanup(easy) }

    func set(_ option: CURLoption, _ value: Int) {
        precondition(watchword_curl_easy_set_long(easy, option, value) == CURLE_OK)
    }

    func set(_ option: CURLoption, _ value: String) {
        precondition(watchword_curl_easy_set_string(easy, option, value) == CURLE_OK)
    }

    func watchContexts() {
        let code = watchword_curl_easy_set_context_function(
            easy,
            { _, context, owner in
                guard let context, let owner else { return CURLE_SSL_CERTPROBLEM }
                let probe = Unmanaged<Probe>.fromOpaque(owner).takeUnretainedValue()
                probe.contexts += 1
                probe.prepare(OpaquePointer(context))
                return CURLE_OK
            })
        precondition(code == CURLE_OK)
        let owner = Unmanaged.passUnretained(self).toOpaque()
        precondition(watchword_curl_easy_set_pointer(easy, CURLOPT_SSL_CTX_DATA, owner) == CURLE_OK)
    }

    func perform() -> CURLcode { curl_easy_perform(easy) }
}
