/// The tables of options, grouped by verdict.
extension CurlOption {
    /// The reasons for which options are ignored.
    enum Neglect: String, CaseIterable {
        case connections =
            "The broker makes its own connections, over IPv4 and IPv6, and reuses them for all programs."
        case versions =
            "The broker and the server negotiate the newest version of HTTP that both support."
        case security =
            "The broker uses TLS 1.2 or newer, and no option can weaken it."
        case otherProtocols =
            "Only protocols other than HTTP use this option."
        case display =
            "Output is neither buffered nor styled, and .curlrc is never read."
    }

    /// The reasons for which options are refused.
    enum Reason: String, CaseIterable {
        case schemes =
            "The configuration sets the allowed login schemes (schemes.order)."
        case security =
            "The broker uses the same TLS settings for all programs; a fetch cannot change them."
        case authorities =
            "The broker uses the system's certificate authorities. For a server that uses another authority, answer the prompt about its certificate, or use --pinnedpubkey."
        case cookies =
            "Cookies are not stored. Send them with -b name=value."
        case netrc =
            "Store passwords in the keyring with: watchword credentials import. The broker reads a netrc file only if its configuration names one (credentials.netrc)."
        case proxies =
            "Set the proxy with -x. The broker chooses the login scheme for a proxy, and prompts for the login, as for a server."
        case proxySecurity =
            "The broker verifies the certificate of an https proxy in the same way as that of a server."
        case connections =
            "The broker makes the connections and shares them among programs; a fetch cannot change them."
        case redirects =
            "A login is never sent to another origin after a redirect."
        case versions =
            "The broker chooses the version of HTTP and the form of requests."
        case shell =
            "Use a shell command or a script instead."
        case configuration =
            "Options are read from the command line only."
        case traces =
            "Use -v to show requests and responses, and watchword log to show the audit log."
    }

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

    static let different: [CurlOption] = [
        CurlOption(
            "cert", "E", takesValue: true,
            .different("A PKCS#11 URI, or a PEM or PKCS#12 file; the type is detected.")),
        CurlOption(
            "continue-at", "C", takesValue: true,
            .different(
                "An incomplete file is stored as FILE.part, and is resumed only if the server still has the same version."
            )),
        CurlOption(
            "cookie", "b", takesValue: true,
            .different("Takes name=value, not a file.")),
        CurlOption(
            "dump-header", "D", takesValue: true,
            .different("Responses whose challenge was answered are not written.")),
        CurlOption(
            "insecure", "k", takesValue: false,
            .different(
                "An untrusted certificate is shown at the terminal and accepted for this fetch; a revoked certificate or a changed key still requires an answer."
            )
        ),
        CurlOption(
            "json", nil, takesValue: false,
            .different(
                "Prints the broker's result as JSON. To post JSON, use -d @file -H 'Content-Type: application/json'.")),
        CurlOption(
            "max-redirs", nil, takesValue: true,
            .different("At most 50 redirects are followed, even if the number is larger.")),
        CurlOption(
            "noproxy", nil, takesValue: true,
            .different(
                "Takes only '*', for no proxy. List hosts to reach without a proxy in the configuration (proxy.except)."
            )),
        CurlOption(
            "pinnedpubkey", nil, takesValue: true,
            .different("Takes one hash (sha256//...), not a file or a list.")),
        CurlOption(
            "proxy", "x", takesValue: true,
            .different(
                "Takes an http, https or socks5h proxy. Without -x, the configured proxy is used; environment variables have no effect."
            )),
        CurlOption(
            "referer", "e", takesValue: true,
            .different("\";auto\" is sent unchanged.")),
        CurlOption(
            "user", "u", takesValue: true,
            .different("Without a password, asks for it at the terminal; the argument is overwritten at startup.")),
        CurlOption(
            "verbose", "v", takesValue: false,
            .different(
                "Shows the queries of URLs, but no logins, no cookies, and no bytes of the body or of TLS."
            )),
        CurlOption(
            "write-out", "w", takesValue: true,
            .different(
                "%{json} is the broker's result; %{watchword_user} and %{watchword_source} are new; values of the broker's connection to the server (addresses, times of its phases, size_request) are 0 or empty."
            )),
    ]

    static func ignored(_ reason: Neglect) -> [CurlOption] {
        let words =
            switch reason {
            case .connections:
                """
                happy-eyeballs-timeout-ms= ipv4/4 ipv6/6 keepalive-time= no-keepalive no-sessionid tcp-fastopen \
                tcp-nodelay expect100-timeout=
                """
            case .versions: "http1.1 http2 http3 no-alpn no-npn"
            case .security:
                """
                egd-file= false-start random-file= ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd \
                ssl-revoke-best-effort sslv2/2 sslv3/3 tlsv1/1 tlsv1.0 tlsv1.1 tlsv1.2
                """
            case .otherProtocols:
                """
                append/a compressed-ssh disable-eprt disable-epsv ftp-account= ftp-alternative-to-user= \
                ftp-create-dirs ftp-method= ftp-pasv ftp-port/P= ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc \
                ftp-ssl-ccc-mode= ftp-ssl-control hostpubmd5= hostpubsha256= krb= list-only/l login-options= mail-auth= \
                mail-from= mail-rcpt= mail-rcpt-allowfails pubkey= quote/Q= sasl-authzid= sasl-ir telnet-option/t= \
                tftp-blksize= tftp-no-options use-ascii/B
                """
            case .display: "disable/q no-buffer/N parallel-immediate styled-output suppress-connect-headers trace-time"
            }
        return list(words, .ignored(reason))
    }

    static func refused(_ reason: Reason) -> [CurlOption] {
        let words =
            switch reason {
            case .schemes: "aws-sigv4= delegation= service-name= ntlm-wb"
            case .security:
                """
                alt-svc= cert-status cert-type= ciphers= curves= crlfile= engine= hsts= key-type= tls-max= \
                tls13-ciphers= tlsauthtype= tlspassword= tlsuser= tlsv1.3
                """
            case .authorities: "cacert= capath="
            case .cookies: "cookie-jar/c= junk-session-cookies/j"
            case .netrc: "netrc/n netrc-file= netrc-optional"
            case .proxies:
                """
                proxy-anyauth proxy-basic proxy-digest proxy-negotiate proxy-ntlm proxy-service-name= socks5-basic \
                socks5-gssapi socks5-gssapi-nec socks5-gssapi-service= preproxy= proxy1.0= proxytunnel/p socks4= \
                socks4a= socks5= socks5-hostname= proxy-header= haproxy-protocol
                """
            case .proxySecurity:
                """
                proxy-cacert= proxy-capath= proxy-cert= proxy-cert-type= proxy-ciphers= proxy-crlfile= proxy-insecure \
                proxy-key= proxy-key-type= proxy-pass= proxy-pinnedpubkey= proxy-ssl-allow-beast \
                proxy-ssl-auto-client-cert proxy-tls13-ciphers= proxy-tlsauthtype= proxy-tlspassword= proxy-tlsuser= \
                proxy-tlsv1
                """
            case .connections:
                """
                abstract-unix-socket= connect-to= dns-interface= dns-ipv4-addr= dns-ipv6-addr= dns-servers= \
                doh-cert-status doh-insecure doh-url= interface= local-port= resolve= unix-socket=
                """
            case .redirects: "location-trusted"
            case .versions:
                """
                http0.9 http1.0/0 http2-prior-knowledge http3-only ignore-content-length path-as-is raw \
                request-target= tr-encoding
                """
            case .shell:
                """
                create-file-mode= crlf etag-compare= etag-save= form-escape metalink next/: no-clobber rate= \
                remote-header-name/J time-cond/z= xattr
                """
            case .configuration: "config/K="
            case .traces: "libcurl= manual/M trace= trace-ascii="
            }
        return list(words, .refused(reason))
    }
}
