internal import WatchwordProtocol

/// The request of the current hop, which changes with each redirect that is followed.
struct HopRequest: Sendable, Equatable {
    var url: FetchURL
    var method: String
    var headers: [HeaderField]
    var body: RequestBody?
}

/// Decides for each redirect whether and how it is followed (RFC 9110 section 15.4; SEMANTICS rule 23).
enum RedirectPolicy {
    /// Returns the next hop; `nil` if `response` does not redirect.
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
                "redirect from \(request.url.origin.text) to \(url.origin.text) not followed: this fetch does not allow redirects to \(url.origin.scheme.rawValue)",
                cause: .schemeNotAllowed)
        }
        // guard: redirect-to-http-after-login
        if hasAuthenticated && request.url.origin.scheme == .https && url.origin.scheme == .http {
            throw FetchFailure(
                .insecureRedirect,
                "redirect from \(request.url.origin.text) to \(url.origin.text) not followed: it leads from https to plain http after a login"
            )
        }
        var next = HopRequest(url: url, method: request.method, headers: request.headers, body: request.body)
        let preservesPost = request.method == "POST" && rules.keepPost.contains(response.status)
        if !preservesPost, becomesGet(status: response.status, method: request.method) {
            if !rules.keepMethod { next.method = "GET" }
            next.body = nil
            next.headers.removeAll(where: HeaderPolicy.isAboutBody)
        }
        if url.origin != request.url.origin {  // guard: redirect-drops-headers
            next.headers.removeAll { field in
                !HeaderPolicy.isHarmless(field) && !(next.body != nil && HeaderPolicy.isAboutBody(field))
            }
        }
        return next
    }

    /// Whether the request loses its body, and its method becomes GET unless `keepMethod` is set. As in browsers, this
    /// applies after 303 to every method but GET and HEAD, and after 301 and 302 only to POST.
    private static func becomesGet(status: Int, method: String) -> Bool {
        switch status {
        case 303: method != "HEAD" && method != "GET"
        case 301, 302: method == "POST"
        default: false
        }
    }
}
