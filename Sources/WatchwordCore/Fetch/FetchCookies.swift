internal import WatchwordProtocol

/// The cookies that the servers of one fetch have set with a challenge or a redirect. Some servers log in only if their
/// cookie comes back with the next request. Nothing of it outlives the fetch, and the browser's rules apply (RFC 6265),
/// which the adapter knows.
struct FetchCookies: Sendable {
    /// By port, because the rules of cookies ignore it, but another port can belong to somebody else. All default ports
    /// count as one, so that a cookie survives a redirect from http to https.
    private var lines: [Int: [Secret]] = [:]

    /// All cookies that a request to `origin` may carry, as far as the port decides.
    func cookies(for origin: Origin) -> [Secret] { lines[Self.port(of: origin)] ?? [] }

    /// Records the cookies after a response of `origin`.
    mutating func record(_ response: TransferResponse, of origin: Origin) {
        // guard: cookies-of-a-proxy
        guard let cookies = response.cookies, !response.isFromProxy else { return }
        lines[Self.port(of: origin)] = cookies
    }

    private static func port(of origin: Origin) -> Int {
        origin.port == origin.scheme.defaultPort ? 0 : origin.port
    }
}
