/// A difference from curl that is not specific to one option. watchword-curl(7) lists these differences by name. A test that
/// compares `fetch` with curl fails for a difference that the page does not list.
struct CurlDifference {
    /// The name, in lower-case letters and dashes.
    let name: String
    let text: String
    /// Whether that test can observe the difference: `false`, for example, for one that requires a terminal or TLS.
    let isCompared: Bool

    private init(_ name: String, _ text: String, isCompared: Bool = true) {
        (self.name, self.text, self.isCompared) = (name, text, isCompared)
    }

    static let all = urls + requests + responses + logins + ends

    private static let urls = [
        CurlDifference(
            "default-scheme",
            "A URL without a scheme is fetched over https, not http. --proto-default changes that."),
        CurlDifference(
            "url-characters",
            "Characters that are invalid in a URL, such as braces with -g, are percent-encoded."),
        CurlDifference("schemes", "Only the schemes http and https are supported.", isCompared: false),
    ]

    private static let requests = [
        CurlDifference("user-agent", "User-Agent is \"watchword\"; -A changes it."),
        CurlDifference(
            "field-order", "The header fields of a request are sent in another order, and always as \"Name: value\".",
            isCompared: false),
        CurlDifference(
            "expect", "Expect: 100-continue is sent with a body larger than 1 MiB, not with every -T."),
        CurlDifference("codings", "--compressed requests gzip and deflate only."),
        CurlDifference(
            "empty-length",
            "A request without a body, but with a method that allows one, contains Content-Length: 0 (RFC 9110)."),
        CurlDifference(
            "reserved-fields",
            "-H cannot set fields that control routing, framing or authentication, such as Authorization, Connection and Host (code 43), or omit Host and Content-Length (code 2). Use -u or --oauth2-bearer for logins."
        ),
        CurlDifference("invalid-fields", "A header field with an invalid name is refused with code 43."),
        CurlDifference("methods", "-X refuses CONNECT, TRACE and invalid methods with code 43."),
        CurlDifference(
            "missing-input", "If a file of -d or -H cannot be read, the command exits with code 26 and sends nothing."),
        CurlDifference("upload-sets", "{} and [] in the file name of -T are not expanded.", isCompared: false),
    ]

    private static let responses = [
        CurlDifference(
            "header-bytes",
            "-i, -I and -D write header fields as \"Name: value\", without other blanks around the value or line folding."
        ),
        CurlDifference("interim", "Interim responses (1xx) are not shown."),
        CurlDifference(
            "incomplete-files",
            "A file of -o or -O has a temporary name until it is complete; an incomplete file is removed, unless -C is given."
        ),
        CurlDifference("opens-first", "If an output file cannot be opened, nothing is sent."),
        CurlDifference("fail-include", "With -f, -i does not write the header of a response with status 400 or above."),
        CurlDifference(
            "redirect-limit",
            "With --max-redirs 0, -i does not write the header of the redirect."),
        CurlDifference("redirects", "A redirect with status 300 is not followed."),
        CurlDifference("bad-redirects", "A redirect to a scheme other than http and https fails with code 47."),
        CurlDifference("retries", "A response that causes a retry is not written."),
        CurlDifference(
            "filesize", "--max-filesize also limits a body whose size the server does not announce."),
        CurlDifference(
            "protected-redirects",
            "After a login, redirects from https to http are not followed, and header fields of -H that may be secret are not sent to another server.",
            isCompared: false),
    ]

    private static let logins = [
        CurlDifference(
            "logs-in-when-asked",
            "A login is sent only after the server has requested one, unless it has accepted one in this session."),
        CurlDifference(
            "refused-login",
            "If the server refuses the login given in the command, the command exits with code 67 and does not write the response."
        ),
        CurlDifference(
            "no-respondent",
            "If a server requires a login, none is stored, and no user can be prompted, the command exits with code 67."
        ),
        CurlDifference(
            "proxies",
            "The configuration sets the proxy. Environment variables such as https_proxy have no effect.",
            isCompared: false),
    ]

    private static let ends = [
        CurlDifference(
            "code-of-several",
            "With several URLs, the exit code is that of the last fetch that failed, even if a later one succeeds."),
        CurlDifference("cut-header", "A response that ends within its header section is a failure (code 56)."),
        CurlDifference(
            "two-lengths",
            "A response with several Content-Length or Location fields that differ is a failure (code 8)."),
        CurlDifference(
            "messages", "Messages are worded differently, on standard error and in %{errormsg}."),
        CurlDifference(
            "progress", "Progress is shown only at a terminal, and in another format.", isCompared: false),
    ]
}
