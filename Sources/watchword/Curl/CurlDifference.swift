/// What differs from curl beyond single options. watchword-curl(7) lists these by name, and a test that runs both programs looks
/// for each difference that it finds under its name in that page.
struct CurlDifference {
    /// Small letters and dashes.
    let name: String
    let text: String
    /// `false` where the test cannot see it: at a terminal, or with TLS.
    let isCompared: Bool

    private init(_ name: String, _ text: String, isCompared: Bool = true) {
        (self.name, self.text, self.isCompared) = (name, text, isCompared)
    }

    static let all = urls + requests + responses + logins + ends

    private static let urls = [
        CurlDifference(
            "default-scheme",
            "A URL without a scheme is fetched over https, and not over http. --proto-default changes that."),
        CurlDifference(
            "url-characters",
            "Characters that have no place in a URL, such as braces with -g, are sent percent-encoded."),
        CurlDifference("schemes", "http and https are the only schemes.", isCompared: false),
    ]

    private static let requests = [
        CurlDifference("user-agent", "User-Agent is \"watchword\"; -A changes it."),
        CurlDifference(
            "field-order", "Header fields of a request are sent in another order, and as \"Name: value\".",
            isCompared: false),
        CurlDifference(
            "expect", "Expect: 100-continue is sent with a body of more than 1 MiB, and not with every -T."),
        CurlDifference("codings", "--compressed asks for gzip and deflate alone."),
        CurlDifference(
            "empty-length", "A request without a body whose method allows one says Content-Length: 0 (RFC 9110)."),
        CurlDifference(
            "reserved-fields",
            "-H sets no field that says where a request goes or ends, or who sends it: Authorization, Connection, Host and the like. That ends with code 43, and Host: and Content-Length: with code 2. Logins are given with -u and --oauth2-bearer."
        ),
        CurlDifference("invalid-fields", "A field whose name is invalid is refused with code 43."),
        CurlDifference("methods", "-X takes no CONNECT, no TRACE and no invalid method; that ends with code 43."),
        CurlDifference(
            "missing-input", "A file of -d or -H that cannot be read ends the command with code 26; nothing is sent."),
        CurlDifference("upload-sets", "{} and [] in the file name of -T are taken as they are.", isCompared: false),
    ]

    private static let responses = [
        CurlDifference(
            "header-bytes",
            "Header fields are written as \"Name: value\" by -i, -I and -D: blanks around a value and line folding are not kept."
        ),
        CurlDifference("interim", "Interim responses (1xx) are not shown."),
        CurlDifference(
            "incomplete-files",
            "A file of -o and -O gets its name when it is complete; an incomplete one is not left behind, unless -C is given."
        ),
        CurlDifference("opens-first", "A file that cannot be written is found before anything is sent."),
        CurlDifference("fail-include", "-f writes no header of the response that it refuses."),
        CurlDifference(
            "redirect-limit",
            "With --max-redirs 0 the header of the redirect is not written to standard output."),
        CurlDifference("redirects", "Status 300 is not followed."),
        CurlDifference("bad-redirects", "A redirect to another scheme than http and https ends with code 47."),
        CurlDifference("retries", "A response that is followed by a retry is not written."),
        CurlDifference(
            "filesize", "--max-filesize also limits a body whose size the server does not announce."),
        CurlDifference(
            "protected-redirects",
            "After a login no redirect leads from https to http, and fields of -H that may be secret are not sent to another server.",
            isCompared: false),
    ]

    private static let logins = [
        CurlDifference(
            "logs-in-when-asked",
            "A login is sent when the server asks for one, and not before, unless it has accepted one in this session."),
        CurlDifference(
            "refused-login",
            "A login of the command that the server refuses ends with code 67, and the response is not written."),
        CurlDifference(
            "nobody-to-ask",
            "Where a server asks for a login, and there is neither one that fits nor anybody to ask, the command ends with code 67."
        ),
        CurlDifference(
            "proxies",
            "The proxy is the configuration's. Environment variables such as https_proxy have no effect.",
            isCompared: false),
    ]

    private static let ends = [
        CurlDifference(
            "code-of-several",
            "With several URLs the exit code is that of the last fetch that failed, also if a later one succeeds."),
        CurlDifference("cut-header", "A response that ends within its header section is a failure (code 56)."),
        CurlDifference(
            "two-lengths",
            "A response with several Content-Length or Location fields that differ is a failure (code 8)."),
        CurlDifference(
            "messages", "Messages have other words, on standard error as in %{errormsg}."),
        CurlDifference(
            "progress", "Progress is shown at a terminal only, and looks different.", isCompared: false),
    ]
}
