internal import WatchwordProtocol

/// The locations of metadata documents.
enum WellKnown {
    /// Returns where a resource may describe itself (RFC 9728 section 3.1), in the order in which they are tried: for its
    /// path, then for the whole server.
    static func resourceMetadata(of resource: FetchURL) -> [FetchURL] {
        let name = "oauth-protected-resource"
        let whole = FetchURL(origin: resource.origin, path: "/.well-known/\(ExactText(name))", query: nil)
        let own = insert(name, into: resource, query: resource.query)
        return own == whole ? [whole] : [own, whole]
    }

    /// Returns where a server may describe itself, in the order in which they are tried (RFC 8414 section 3.1, OpenID
    /// Connect Discovery 1.0 section 4).
    static func serverMetadata(of issuer: FetchURL) -> [FetchURL] {
        let openID = "openid-configuration"
        let appended = FetchURL(
            origin: issuer.origin, path: "\(path(of: issuer))/.well-known/\(ExactText(openID))", query: nil)
        let inserted = [insert("oauth-authorization-server", into: issuer), insert(openID, into: issuer)]
        return inserted.contains(appended) ? inserted : inserted + [appended]
    }

    private static func insert(_ name: String, into url: FetchURL, query: String? = nil) -> FetchURL {
        FetchURL(origin: url.origin, path: "/.well-known/\(ExactText(name))\(path(of: url))", query: query)
    }

    /// The path without one terminating slash.
    private static func path(of url: FetchURL) -> ExactText {
        url.path.hasSuffix("/") ? ExactText(url.path.string.dropLast()) : url.path
    }
}
