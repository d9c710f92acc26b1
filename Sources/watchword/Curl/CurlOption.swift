/// An option of curl 7.88, and what it is here. `watchword-curl(7)` is written from this table, and an error message says why an
/// option is missing.
struct CurlOption {
    enum Verdict: Equatable {
        /// With curl's meaning.
        case same
        case different(String)
        case absent(Reason)
    }

    /// Why options are not here, in groups.
    enum Reason: String, CaseIterable {
        case schemes =
            "Which schemes are good enough is the configuration's business (schemes.order), and the broker's."
        case security =
            "How the line is secured is the broker's business, and the same for all programs."
        case authorities =
            "Authorities are the system's; for one server, answer the question about its certificate, or --pinnedpubkey."
        case cookies =
            "There is no cookie jar; log-ins are the broker's. One cookie is a header field: -H 'Cookie: name=value'."
        case netrc =
            "Passwords lie in the keyring, not in a readable file: watchword credentials store."
        case proxies =
            "Proxies are logged in to as servers are: the broker asks, and remembers."
        case proxySecurity =
            "A proxy over https is verified as servers are."
        case otherProtocols =
            "It is for a protocol other than HTTP."
        case connections =
            "Connections are the broker's, and shared by programs."
        case redirects =
            "Redirects are followed as RFC 9110 says, and log-ins never across origins."
        case versions =
            "The version of HTTP and its details are the broker's business."
        case shell =
            "Use the shell, or a small script around it."
        case configuration =
            "Options come from the command line alone."
        case traces =
            "What happens is in -v and in: watchword log"
    }

    /// Without the two dashes.
    let long: String
    let short: Character?
    let verdict: Verdict

    private init(_ long: String, _ short: Character? = nil, _ verdict: Verdict) {
        (self.long, self.short, self.verdict) = (long, short, verdict)
    }

    /// As it is written in a command.
    var name: String { short.map { "-\($0), --\(long)" } ?? "--\(long)" }

    static let all: [CurlOption] = same + different + Reason.allCases.flatMap(absent)

    /// `--name` or `-n`.
    static func named(_ text: String) -> CurlOption? {
        all.first { text == "--\($0.long)" || $0.short.map { text == "-\($0)" } ?? false }
    }

    /// `long` or `long/s`, with blanks in between.
    private static func list(_ words: String, _ verdict: Verdict) -> [CurlOption] {
        words.split(separator: " ").map { word in
            let parts = word.split(separator: "/")
            return CurlOption(String(parts[0]), parts.count > 1 ? parts[1].first : nil, verdict)
        }
    }

    private static let same = list(
        """
        anyauth basic compressed continue-at/C create-dirs data/d data-ascii data-binary data-raw \
        data-urlencode digest fail/f fail-with-body form/F form-string get/G head/I header/H help/h \
        include/i key limit-rate location/L max-filesize max-redirs max-time/m negotiate no-progress-meter \
        ntlm oauth2-bearer output/o parallel/Z parallel-max pass pinnedpubkey progress-bar/# proxy-user/U \
        range/r remote-name/O remote-name-all request/X retry retry-all-errors retry-connrefused \
        retry-delay retry-max-time show-error/S silent/s speed-limit/Y speed-time/y upload-file/T \
        version/V
        """, .same)

    private static let different: [CurlOption] = [
        CurlOption(
            "cert", "E",
            .different("A PKCS#11 URI or a file of PEM or PKCS#12; the kind is found out.")),
        CurlOption(
            "dump-header", "D",
            .different("The header of each URL's last response, not that of redirects and challenges.")),
        CurlOption(
            "insecure", "k",
            .different("The certificate is shown, and accepted for this fetch; one with a grave fault is not.")),
        CurlOption(
            "json", nil,
            .different("Prints the broker's result. To post JSON: -d @file -H 'Content-Type: application/json'.")),
        CurlOption(
            "noproxy", nil,
            .different("Takes '*' alone: no proxy. Exceptions for hosts are in the configuration (proxy.except).")),
        CurlOption(
            "proxy", "x",
            .different("http, https and socks5h; without it the configuration's proxy counts, never the environment's.")
        ),
        CurlOption(
            "referer", "e",
            .different("\";auto\" has no meaning.")),
        CurlOption(
            "user", "u",
            .different("Without a password it is asked for at the terminal; the argument is overwritten at once.")),
        CurlOption(
            "user-agent", "A",
            .different("An empty name is sent as it is; curl sends no field then.")),
        CurlOption(
            "verbose", "v",
            .different("Shows what the broker tells: headers, redirects, challenges; no bytes of the connection.")),
        CurlOption(
            "write-out", "w",
            .different("Some variables, see watchword-fetch(1); another one is an error, and so is @file.")),
    ]

    private static func absent(_ reason: Reason) -> [CurlOption] {
        switch reason {
        case .schemes:
            list(
                """
                aws-sigv4 delegation disallow-username-in-url krb login-options sasl-authzid sasl-ir service-name \
                ntlm-wb
                """, .absent(reason))
        case .security:
            list(
                """
                alt-svc cert-status cert-type ciphers curves crlfile egd-file engine false-start hsts key-type \
                no-alpn no-npn no-sessionid random-file ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke \
                ssl-reqd ssl-revoke-best-effort sslv2/2 sslv3/3 tls-max tls13-ciphers tlsauthtype tlspassword \
                tlsuser tlsv1/1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3
                """, .absent(reason))
        case .authorities:
            list(
                """
                cacert capath
                """, .absent(reason))
        case .cookies:
            list(
                """
                cookie/b cookie-jar/c junk-session-cookies/j
                """, .absent(reason))
        case .netrc:
            list(
                """
                netrc/n netrc-file netrc-optional
                """, .absent(reason))
        case .proxies:
            list(
                """
                proxy-anyauth proxy-basic proxy-digest proxy-negotiate proxy-ntlm proxy-service-name socks5-basic \
                socks5-gssapi socks5-gssapi-nec socks5-gssapi-service preproxy proxy1.0 proxytunnel/p socks4 socks4a \
                socks5 socks5-hostname proxy-header haproxy-protocol suppress-connect-headers
                """, .absent(reason))
        case .proxySecurity:
            list(
                """
                proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-insecure \
                proxy-key proxy-key-type proxy-pass proxy-pinnedpubkey proxy-ssl-allow-beast \
                proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser \
                proxy-tlsv1
                """, .absent(reason))
        case .otherProtocols:
            list(
                """
                append/a compressed-ssh crlf disable-eprt disable-epsv ftp-account ftp-alternative-to-user \
                ftp-create-dirs ftp-method ftp-pasv ftp-port/P ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc \
                ftp-ssl-ccc-mode ftp-ssl-control hostpubmd5 hostpubsha256 list-only/l mail-auth mail-from mail-rcpt \
                mail-rcpt-allowfails pubkey quote/Q telnet-option/t tftp-blksize tftp-no-options use-ascii/B
                """, .absent(reason))
        case .connections:
            list(
                """
                abstract-unix-socket connect-timeout connect-to dns-interface dns-ipv4-addr dns-ipv6-addr \
                dns-servers doh-cert-status doh-insecure doh-url happy-eyeballs-timeout-ms interface ipv4/4 ipv6/6 \
                keepalive-time local-port no-keepalive resolve tcp-fastopen tcp-nodelay unix-socket proto \
                proto-default proto-redir
                """, .absent(reason))
        case .redirects:
            list(
                """
                location-trusted post301 post302 post303
                """, .absent(reason))
        case .versions:
            list(
                """
                expect100-timeout http0.9 http1.0/0 http1.1 http2 http2-prior-knowledge http3 http3-only \
                ignore-content-length path-as-is raw request-target tr-encoding
                """, .absent(reason))
        case .shell:
            list(
                """
                create-file-mode etag-compare etag-save fail-early form-escape globoff/g metalink next/: no-buffer/N \
                no-clobber output-dir parallel-immediate rate remote-header-name/J remote-time/R remove-on-error \
                stderr styled-output time-cond/z url url-query xattr
                """, .absent(reason))
        case .configuration:
            list(
                """
                config/K disable/q
                """, .absent(reason))
        case .traces:
            list(
                """
                libcurl manual/M trace trace-ascii trace-time
                """, .absent(reason))
        }
    }
}
