/// An option of curl 7.88, and how `watchword fetch` treats it. Command lines are parsed with the list of all options.
struct CurlOption: Equatable {
    enum Verdict: Equatable {
        /// Supported with curl's meaning.
        case same
        /// Supported with a difference, which watchword-curl(7) describes.
        case different
        /// Ignored, with a note, because the option would change neither the result nor its security.
        case ignored(reason: String)
        case refused(reason: String)
    }

    /// The name without dashes.
    let long: String
    let short: Character?
    let takesValue: Bool
    let verdict: Verdict

    init(_ long: String, _ short: Character?, takesValue: Bool, _ verdict: Verdict) {
        (self.long, self.short, self.takesValue, self.verdict) = (long, short, takesValue, verdict)
    }

    /// The option as written in a command, such as `-d, --data`.
    var name: String { short.map { "-\($0), --\(long)" } ?? "--\(long)" }

    static let all: [CurlOption] =
        same + different + ignored.flatMap { list($0.options, .ignored(reason: $0.reason)) }
        + refused.flatMap { list($0.options, .refused(reason: $0.reason)) }

    private static let byLong = Dictionary(all.map { ($0.long, $0) }, uniquingKeysWith: { first, _ in first })
    private static let byShort = Dictionary(
        all.compactMap { option in option.short.map { ($0, option) } }, uniquingKeysWith: { first, _ in first })

    static func named(long: String) -> CurlOption? { byLong[long] }
    static func named(short: Character) -> CurlOption? { byShort[short] }

    /// Returns the option written as `--name` or `-n`.
    static func named(_ text: String) -> CurlOption? {
        if text.hasPrefix("--") { return byLong[String(text.dropFirst(2))] }
        return text.count == 2 && text.hasPrefix("-") ? text.last.flatMap { byShort[$0] } : nil
    }

    /// Parses words separated by blanks: `long` or `long/s`, with a final `=` for an option that takes a value.
    static func list(_ words: String, _ verdict: Verdict) -> [CurlOption] {
        words.split(separator: " ").map { word in
            let takesValue = word.hasSuffix("=")
            let parts = (takesValue ? word.dropLast() : word).split(separator: "/")
            return CurlOption(
                String(parts[0]), parts.count > 1 ? parts[1].first : nil, takesValue: takesValue, verdict)
        }
    }
}

/// The options, grouped by verdict.
extension CurlOption {
    static let same = list(
        """
        anyauth basic compressed connect-timeout= create-dirs data/d= data-ascii= data-binary= data-raw= \
        data-urlencode= digest disallow-username-in-url fail/f fail-early fail-with-body form/F= form-string= get/G \
        globoff/g head/I header/H= help/h include/i key= limit-rate= location/L max-filesize= max-time/m= negotiate \
        no-progress-meter ntlm oauth2-bearer= output/o= output-dir= parallel/Z parallel-max= pass= post301 post302 \
        post303 progress-bar/# proto= proto-default= proto-redir= proxy-user/U= range/r= remote-name/O \
        remote-name-all remote-time/R remove-on-error request/X= retry= retry-all-errors retry-connrefused \
        retry-delay= retry-max-time= show-error/S silent/s speed-limit/Y= speed-time/y= stderr= upload-file/T= url= \
        url-query= user-agent/A= version/V
        """, .same)

    static let different = list(
        """
        cert/E= continue-at/C= cookie/b= dump-header/D= insecure/k json max-redirs= noproxy= pinnedpubkey= \
        proxy/x= referer/e= user/u= verbose/v write-out/w=
        """, .different)

    /// The ignored options, with the reason.
    static let ignored: [(reason: String, options: String)] = [
        (
            "The broker makes its own connections, over IPv4 and IPv6, and reuses them for all programs.",
            """
            happy-eyeballs-timeout-ms= ipv4/4 ipv6/6 keepalive-time= no-keepalive no-sessionid tcp-fastopen \
            tcp-nodelay expect100-timeout=
            """
        ),
        (
            "The broker and the server negotiate the newest version of HTTP that both support.",
            "http1.1 http2 http3 no-alpn no-npn"
        ),
        (
            "The broker uses TLS 1.2 or newer, and no option can weaken it.",
            """
            egd-file= false-start random-file= ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd \
            ssl-revoke-best-effort sslv2/2 sslv3/3 tlsv1/1 tlsv1.0 tlsv1.1 tlsv1.2
            """
        ),
        (
            "Only protocols other than HTTP use this option.",
            """
            append/a compressed-ssh disable-eprt disable-epsv ftp-account= ftp-alternative-to-user= \
            ftp-create-dirs ftp-method= ftp-pasv ftp-port/P= ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc \
            ftp-ssl-ccc-mode= ftp-ssl-control hostpubmd5= hostpubsha256= krb= list-only/l login-options= mail-auth= \
            mail-from= mail-rcpt= mail-rcpt-allowfails pubkey= quote/Q= sasl-authzid= sasl-ir telnet-option/t= \
            tftp-blksize= tftp-no-options use-ascii/B
            """
        ),
        (
            "Output is neither buffered nor styled, and .curlrc is never read.",
            "disable/q no-buffer/N parallel-immediate styled-output suppress-connect-headers trace-time"
        ),
    ]

    /// The refused options, with the reason.
    static let refused: [(reason: String, options: String)] = [
        (
            "The configuration sets the allowed login schemes (schemes.order).",
            "aws-sigv4= delegation= service-name= ntlm-wb"
        ),
        (
            "The broker uses the same TLS settings for all programs; a fetch cannot change them.",
            """
            alt-svc= cert-status cert-type= ciphers= curves= crlfile= engine= hsts= key-type= tls-max= \
            tls13-ciphers= tlsauthtype= tlspassword= tlsuser= tlsv1.3
            """
        ),
        (
            "The broker uses the system's certificate authorities. For a server that uses another authority, answer the prompt about its certificate, or use --pinnedpubkey.",
            "cacert= capath="
        ),
        (
            "Cookies are not stored. Send them with -b name=value.",
            "cookie-jar/c= junk-session-cookies/j"
        ),
        (
            "Store passwords in the keyring with: watchword credentials import. The broker reads a netrc file only if its configuration names one (credentials.netrc).",
            "netrc/n netrc-file= netrc-optional"
        ),
        (
            "Set the proxy with -x. The broker chooses the login scheme for a proxy, and prompts for the login, as for a server.",
            """
            proxy-anyauth proxy-basic proxy-digest proxy-negotiate proxy-ntlm proxy-service-name= socks5-basic \
            socks5-gssapi socks5-gssapi-nec socks5-gssapi-service= preproxy= proxy1.0= proxytunnel/p socks4= \
            socks4a= socks5= socks5-hostname= proxy-header= haproxy-protocol
            """
        ),
        (
            "The broker verifies the certificate of an https proxy in the same way as that of a server.",
            """
            proxy-cacert= proxy-capath= proxy-cert= proxy-cert-type= proxy-ciphers= proxy-crlfile= proxy-insecure \
            proxy-key= proxy-key-type= proxy-pass= proxy-pinnedpubkey= proxy-ssl-allow-beast \
            proxy-ssl-auto-client-cert proxy-tls13-ciphers= proxy-tlsauthtype= proxy-tlspassword= proxy-tlsuser= \
            proxy-tlsv1
            """
        ),
        (
            "The broker makes the connections and shares them among programs; a fetch cannot change them.",
            """
            abstract-unix-socket= connect-to= dns-interface= dns-ipv4-addr= dns-ipv6-addr= dns-servers= \
            doh-cert-status doh-insecure doh-url= interface= local-port= resolve= unix-socket=
            """
        ),
        (
            "A login is never sent to another origin after a redirect.",
            "location-trusted"
        ),
        (
            "The broker chooses the version of HTTP and the form of requests.",
            """
            http0.9 http1.0/0 http2-prior-knowledge http3-only ignore-content-length path-as-is raw \
            request-target= tr-encoding
            """
        ),
        (
            "Use a shell command or a script instead.",
            """
            create-file-mode= crlf etag-compare= etag-save= form-escape metalink next/: no-clobber rate= \
            remote-header-name/J time-cond/z= xattr
            """
        ),
        (
            "Options are read from the command line only.",
            "config/K="
        ),
        (
            "Use -v to show requests and responses, and watchword log to show the audit log.",
            "libcurl= manual/M trace= trace-ascii="
        ),
    ]
}
