/// The options, group by group.
extension CurlOption {
    /// Why options are ignored, in groups.
    enum Neglect: String, CaseIterable {
        case connections =
            "The broker makes its own connections, over IPv4 and IPv6, and keeps them for all programs."
        case versions =
            "The broker and the server agree on the newest version of HTTP that both know."
        case security =
            "The broker speaks TLS 1.2 and newer, and is not made less strict."
        case otherProtocols =
            "It has no effect on HTTP."
        case display =
            "What is written is neither delayed nor decorated, and no configuration file is read."
    }

    /// Why options are refused, in groups.
    enum Reason: String, CaseIterable {
        case schemes =
            "Which login schemes are good enough is set in the configuration (schemes.order)."
        case security =
            "How connections are protected is decided by the broker, and is the same for all programs."
        case authorities =
            "Certificate authorities are the system's; for one server, answer the question about its certificate, or use --pinnedpubkey."
        case cookies =
            "There is no cookie jar. Cookies can be given with -b name=value."
        case netrc =
            "Passwords belong into the keyring: watchword credentials import. The broker reads a netrc file where its configuration names one (credentials.netrc)."
        case proxies =
            "The broker logs in to proxies as it does to servers: it asks, and remembers."
        case proxySecurity =
            "A proxy over https is verified as servers are."
        case connections =
            "Connections belong to the broker, and are shared by programs."
        case redirects =
            "A login never follows a redirect to another origin."
        case versions =
            "The version of HTTP and its details are decided by the broker."
        case shell =
            "Use the shell, or a small script around the command."
        case configuration =
            "Options come from the command line alone."
        case traces =
            "What happens is shown by -v and by watchword log."
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
            .different("A PKCS#11 URI or a file of PEM or PKCS#12; the kind is detected.")),
        CurlOption(
            "continue-at", "C", takesValue: true,
            .different(
                "What is incomplete is kept as FILE.part, and is continued only if the server still has the same version."
            )),
        CurlOption(
            "cookie", "b", takesValue: true,
            .different("Takes name=value, and no file.")),
        CurlOption(
            "dump-header", "D", takesValue: true,
            .different("Of logins, the last response is written, and not the challenges that were answered.")),
        CurlOption(
            "insecure", "k", takesValue: false,
            .different(
                "The certificate is shown at the terminal, and accepted for this fetch; one with a grave fault is not.")
        ),
        CurlOption(
            "json", nil, takesValue: false,
            .different("Prints the broker's result. To post JSON: -d @file -H 'Content-Type: application/json'.")),
        CurlOption(
            "max-redirs", nil, takesValue: true,
            .different("At most 50 redirects are followed, whatever the number.")),
        CurlOption(
            "noproxy", nil, takesValue: true,
            .different("Takes '*' alone: no proxy. Exceptions for hosts are in the configuration (proxy.except).")),
        CurlOption(
            "pinnedpubkey", nil, takesValue: true,
            .different("One hash (sha256//...), and no file and no list.")),
        CurlOption(
            "proxy", "x", takesValue: true,
            .different("http, https and socks5h; without it the configuration's proxy counts, never the environment's.")
        ),
        CurlOption(
            "referer", "e", takesValue: true,
            .different("\";auto\" is sent as it is.")),
        CurlOption(
            "user", "u", takesValue: true,
            .different("Without a password it is asked for at the terminal; the argument is overwritten at once.")),
        CurlOption(
            "verbose", "v", takesValue: false,
            .different(
                "Logins and cookies are not shown, and neither are the bytes of the body or of TLS; the queries of URLs are."
            )),
        CurlOption(
            "write-out", "w", takesValue: true,
            .different(
                "%{json} is the broker's result; %{watchword_user} and %{watchword_source} are new; what only the broker's connection knows (addresses, times of its steps, size_request) is 0 or empty."
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
