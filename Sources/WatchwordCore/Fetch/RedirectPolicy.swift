internal import WatchwordProtocol

/// What is asked for now: it changes with each redirect that is followed.
struct HopRequest: Sendable, Equatable {
    var url: FetchURL
    var method: String
    var headers: [HeaderField]
    var body: RequestBody?
}

/// Whether and how a redirect is followed (RFC 9110 section 15.4; semantics rule 23). The broker decides each hop anew.
enum RedirectPolicy {
    /// The next hop, or `nil` when `response` does not redirect.
    /// - Throws: `FetchFailure` of kind `badRedirect` or `insecureRedirect`.
    static func next(
        after request: HopRequest, response: TransferResponse, hasAuthenticated: Bool,
        _ rules: RedirectParams = RedirectParams()
    ) throws(FetchFailure) -> HopRequest? {
        guard [301, 302, 303, 307, 308].contains(response.status),
            let location = response.headers.firstValue(of: "Location"), !location.isEmpty
        else { return nil }
        let url = try request.url.resolving(location)
        if let schemes = rules.schemes, !schemes.contains(url.origin.scheme.rawValue) {
            throw FetchFailure(
                .insecureRedirect,
                "\(request.url.origin.text) redirects to \(url.origin.text), a scheme that this fetch does not allow. It is not followed.",
                cause: .schemeNotAllowed)
        }
        if hasAuthenticated && request.url.origin.scheme == .https && url.origin.scheme == .http {
            throw FetchFailure(
                .insecureRedirect,
                "After a log-in \(request.url.origin.text) redirects from https to \(url.origin.text), which is not protected. It is not followed."
            )
        }
        var next = HopRequest(url: url, method: request.method, headers: request.headers, body: request.body)
        let keepsPost = request.method == "POST" && rules.keepPost.contains(response.status)
        if !keepsPost, becomesGet(status: response.status, method: request.method) {
            if !rules.keepMethod { next.method = "GET" }
            next.body = nil
            next.headers.removeAll(where: HeaderPolicy.isAboutBody)
        }
        if url.origin != request.url.origin {
            next.headers.removeAll { field in
                !HeaderPolicy.isHarmless(field) && !(next.body != nil && HeaderPolicy.isAboutBody(field))
            }
        }
        return next
    }

    /// 303 always, and 301 and 302 after a POST, as all browsers do.
    private static func becomesGet(status: Int, method: String) -> Bool {
        switch status {
        case 303: method != "HEAD" && method != "GET"
        case 301, 302: method == "POST"
        default: false
        }
    }
}
