internal import WatchwordProtocol

/// Requests that are well-formed, but not allowed.
extension FrontRefusal {
    public static let notForProxy = FrontRefusal(
        400, "not-for-proxy", "this is a proxy; send an absolute http:// URL, or CONNECT", hasBody: false)
    static let notForSite = FrontRefusal(
        400, "not-for-site", "this is not a proxy; send a path as the request target", hasBody: false)
    static let token = FrontRefusal(
        407, "token", "the token of the proxy is missing or wrong; use the proxy URL that watchword printed")
    public static let wrongName = FrontRefusal(
        403, "wrong-name", "the Host field is not the name and port of this front; use the URL that watchword printed",
        hasBody: false)
    static let foreignPage = FrontRefusal(
        403, "foreign-page", "a web page of another site sent the request; only programs may use this front",
        hasBody: false)

    /// Leads a browser to the name of the front, because the site gets no cookies under the address.
    public static func elsewhere(_ url: String) -> FrontRefusal {
        var refusal = FrontRefusal(307, "own-name", "the site is at \(url)", hasBody: false)
        refusal.location = url
        return refusal
    }

    /// The response to OPTIONS that no further server gets.
    static let lastRecipient = FrontRefusal(200, "max-forwards", "Max-Forwards is 0", hasBody: false)

    static func hostNotAllowed(_ host: ExactText) -> FrontRefusal {
        FrontRefusal(
            403, "host-not-allowed",
            "this proxy may not connect to \"\(host.shortened)\"; add the host to the allowed hosts of the front")
    }

    public static func requestNotAllowed(_ method: String) -> FrontRefusal {
        FrontRefusal(
            403, "request-not-allowed",
            "this front does not allow \(method.shortened) for this path; add it to the methods and paths of the front")
    }

    static func portNotAllowed(_ port: Int) -> FrontRefusal {
        FrontRefusal(
            403, "port-not-allowed",
            "this proxy may not open a tunnel to port \(port); add the port to the tunnel ports of the front")
    }
}
