public import WatchwordProtocol

/// Decides whether a request to a front may pass. The user of the peer is checked before the first byte is read, by the
/// socket layer.
public struct FrontAccess: Sendable {
    public enum Kind: Sendable {
        /// A forward proxy. Without a token, programs reach only the allowed hosts.
        case proxy(token: Secret?)
        /// A front of one site. The names are the values of `Host` by which programs reach it, each with its port.
        case site(names: [ExactText])
    }

    public enum Verdict: Sendable, Equatable {
        /// The request may pass. Stored credentials are used only if `usesCredentials`: a web page of another site may have
        /// caused the request.
        case allowed(usesCredentials: Bool)
        case refused(FrontRefusal)
    }

    public var kind: Kind
    /// The hosts that a proxy without a token admits.
    public var allowedHosts: [HostPattern]
    /// The ports to which CONNECT may open a tunnel. Port 25 is never allowed.
    public var tunnelPorts: Set<Int>

    /// HTTPS, HTTP (npm and skopeo tunnel to it), SSH, and the alternative HTTPS port.
    public static let defaultTunnelPorts: Set<Int> = [443, 80, 22, 8443]

    public init(
        _ kind: Kind, allowedHosts: [HostPattern] = [], tunnelPorts: Set<Int> = Self.defaultTunnelPorts
    ) {
        self.kind = kind
        self.allowedHosts = allowedHosts
        self.tunnelPorts = tunnelPorts
    }

    /// - Parameter isDescendant: whether the peer is a descendant of the process that opened the front. Such a program
    ///   needs no token, because many cannot send one.
    public func verdict(_ request: FrontRequest, isDescendant: Bool) -> Verdict {
        do throws(FrontRefusal) {
            switch kind {
            case .proxy(let token): return try proxy(request, token, isDescendant)
            case .site: return try site(request)
            }
        } catch {
            return .refused(error)
        }
    }

    private func proxy(_ request: FrontRequest, _ token: Secret?, _ isDescendant: Bool) throws(FrontRefusal) -> Verdict
    {
        let (host, port, origin): (ExactText, Int, Origin?) =
            switch request.target {
            case .absolute(let url): (url.origin.host, url.origin.port, url.origin)
            case .authority(let host, let port): (host, port, nil)
            case .origin: throw .notForProxy
            }
        // guard: front-needs-token
        if let token, !isDescendant, !FrontToken.isValid(request.proxyAuthorization, token: token) { throw .token }
        let isAllowed = token != nil || isDescendant || allowedHosts.contains { $0.matches(host: host, port: port) }
        guard isAllowed else { throw .hostNotAllowed(host) }  // guard: front-allowed-hosts
        if request.isConnect {
            // guard: front-tunnel-ports
            guard tunnelPorts.contains(port), port != 25 else { throw .portNotAllowed(port) }
        }
        return .allowed(usesCredentials: !request.isForeign(to: origin))  // guard: front-foreign-page
    }

    private func site(_ request: FrontRequest) throws(FrontRefusal) -> Verdict {
        guard isNamed(by: request), let authority = request.authority else {
            throw request.target.isForProxy ? .notForSite : .wrongName
        }
        let origin = try? FetchURL("http://\(authority)").origin
        guard !request.isForeign(to: origin) else { throw .foreignPage }  // guard: front-site-foreign-page
        return .allowed(usesCredentials: true)
    }

    /// Whether a request is for this front of a site, by `Host` or by its URL.
    public func isNamed(by request: FrontRequest) -> Bool {  // guard: front-site-name
        guard case .site(let names) = kind, let authority = request.authority else { return false }
        return names.contains { $0.asciiLowercased == authority }
    }
}

extension FrontRequest {
    /// Whether a browser sent the request for a page of another origin than `target`. No single field shows all of them:
    /// images have no `Origin`, and WebSockets have `Sec-Fetch-Site: none`.
    fileprivate func isForeign(to target: Origin?) -> Bool {
        let sites = headers.values(of: "Sec-Fetch-Site")
        // guard: front-sec-fetch-site
        let isCrossSite = sites.contains { !["none", "same-origin"].contains(ExactText($0).asciiLowercased) }
        // guard: front-origin-field
        let hasForeignOrigin = headers.values(of: "Origin").contains { value in
            guard let target, let origin = try? FetchURL(value) else { return true }
            return origin.origin != target || origin.requestTarget != "/"
        }
        return isCrossSite || hasForeignOrigin
    }
}

/// The token of a front, which programs send as the password of `Proxy-Authorization: Basic` (RFC 7617 section 2).
enum FrontToken {
    /// Whether the value of `Proxy-Authorization` contains `token`, with any user name. The comparison takes constant time.
    static func isValid(_ field: Secret?, token: Secret) -> Bool {  // guard: front-token
        guard let field, !token.isEmpty, let password = password(of: field) else { return false }
        return password == token
    }

    private static func password(of field: Secret) -> Secret? {
        field.withUnsafeBytes { bytes in
            let scheme = bytes.prefix { $0 != 0x20 }
            guard scheme.map(\.asciiLowercased).elementsEqual("basic".utf8) else { return nil }
            let encoded = bytes.dropFirst(scheme.count).drop { $0 == 0x20 }
            guard var plain = Base64.decode(UnsafeRawBufferPointer(rebasing: encoded)) else { return nil }
            defer { plain.withUnsafeMutableBytes(WipingBuffer.wipe) }
            guard let colon = plain.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            return plain.withUnsafeBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[(colon + 1)...])) }
        }
    }
}
