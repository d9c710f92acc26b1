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
            "Characters that are invalid in a URL, such as braces with -g, are percent-encoded, with capital letters. The host is sent in small letters, and dot segments are removed, even if they are encoded (%2e%2e)."
        ),
        CurlDifference(
            "strict-urls",
            "Exactly two slashes follow the scheme of a URL, and its host is in the usual form: 127.1, 0x7f.1 and percent-encoded hosts are refused with code 3, URLs of more than 16 KiB with code 2."
        ),
        CurlDifference(
            "users",
            "A user in a URL without a password (bob@) has none, not an empty one. A user that contains a colon (b%3Aob) is not sent with Basic. A control character, and a percent sign that encodes nothing (bob:100%@), are refused with code 3, a control character in -u with code 2. A blank is accepted."
        ),
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
        CurlDifference(
            "redirects",
            "Only redirects with status 301, 302, 303, 307 and 308 are followed. One to a fragment (#x) leads to the same URL."
        ),
        CurlDifference(
            "cookies",
            "A cookie that a challenge or a redirect has set is sent with the next requests of this fetch, as with -b and an empty file name in curl. None is stored."
        ),
        CurlDifference(
            "bad-redirects",
            "A redirect to a scheme other than http and https, to a URL with a user, or to one that is invalid or would be refused in the command, fails with code 47. A backslash in it is invalid."
        ),
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
            "challenges",
            "A malformed challenge is not answered: without a realm, with a parameter twice, or without commas or quotation marks. If the server has no challenge that the login given in the command can answer, the command exits with code 67."
        ),
        CurlDifference(
            "proof", "A response with Digest that contains a wrong proof of the server (rspauth) fails with code 67."),
        CurlDifference(
            "stale",
            "A Digest login is repeated for stale=true twice in a row; then the command exits with code 67."),
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
            "malformed",
            "A response whose Content-Length is not a number, such as 4x or +4, or is too large, or with a blank before the colon of this or another field that decides its length or a login, is a failure (code 8), and so is one that begins with http/1.1 in small letters (code 1)."
        ),
        CurlDifference(
            "codes",
            "A response whose first field is folded, or with a malformed size of a chunk, may fail with code 8 instead of 43, and one whose header section is too large with code 63 instead of 27."
        ),
        CurlDifference(
            "unrequested", "A response with status 101 that was not requested is a failure with code 8, not 52."),
        CurlDifference(
            "messages", "Messages are worded differently, on standard error and in %{errormsg}."),
        CurlDifference(
            "progress", "Progress is shown only at a terminal, and in another format.", isCompared: false),
    ]

    /// The differences of single options.
    static let options = [
        CurlDifference(
            "cert",
            "A PKCS#11 URI, or a PEM or PKCS#12 file; the type is detected.",
            isCompared: false),
        CurlDifference(
            "continue-at",
            "An incomplete file is stored as FILE.part, and is resumed only if the server still has the same version."),
        CurlDifference(
            "cookie",
            "Takes name=value, not a file."),
        CurlDifference(
            "dump-header",
            "Responses whose challenge was answered are not written."),
        CurlDifference(
            "insecure",
            "An untrusted certificate is shown at the terminal and accepted for this fetch; a revoked certificate or a changed key still requires an answer.",
            isCompared: false),
        CurlDifference(
            "json",
            "Prints the broker's result as JSON. To post JSON, use -d @file -H 'Content-Type: application/json'."),
        CurlDifference(
            "max-redirs",
            "At most 50 redirects are followed, even if the number is larger."),
        CurlDifference(
            "noproxy",
            "Takes only '*', for no proxy. List hosts to reach without a proxy in the configuration (proxy.except)."),
        CurlDifference(
            "pinnedpubkey",
            "Takes one hash (sha256//...), not a file or a list.",
            isCompared: false),
        CurlDifference(
            "proxy",
            "Takes an http, https or socks5h proxy. Without -x, the configured proxy is used; environment variables have no effect.",
            isCompared: false),
        CurlDifference(
            "referer",
            "\";auto\" is sent unchanged."),
        CurlDifference(
            "user",
            "Without a password, asks for it at the terminal; the argument is overwritten at startup.",
            isCompared: false),
        CurlDifference(
            "verbose",
            "Shows the queries of URLs, but no logins, no cookies, and no bytes of the body or of TLS.",
            isCompared: false),
        CurlDifference(
            "write-out",
            "%{json} is the broker's result; %{watchword_user} and %{watchword_source} are new; values of the broker's connection to the server (addresses, times of its phases, size_request) are 0 or empty."
        ),
    ]
}
