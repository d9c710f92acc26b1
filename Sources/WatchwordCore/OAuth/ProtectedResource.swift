internal import JSONText
internal import WatchwordProtocol

/// The metadata of a resource (RFC 9728 section 2).
struct ProtectedResource: Sendable, Equatable {
    /// The identifier, which is sent as `resource` (RFC 8707).
    let identifier: String
    let path: ExactText
    let issuer: String
    let scopes: [String]

    /// Checks the metadata for a request to `url`. The identifier has the origin of the request, and its path is that of the
    /// request or above it; RFC 9728 section 3.3 demands identity, which no request below the resource would meet.
    /// - Throws: `FetchFailure` of kind `loginFailed`.
    init(_ body: [UInt8], for url: FetchURL) throws(FetchFailure) {
        guard let json = OAuthDocument.parse(body), let text = json["resource"]?.string else {
            throw Self.failure(url, "is not a JSON object with a resource")
        }
        // guard: oauth-resource
        guard !text.contains("#"), let resource = try? FetchURL(text), resource.origin == url.origin,
            PathRange.path(resource.path, covers: url.path)
        else { throw Self.failure(url, "describes another resource, \(text.shortened)") }
        guard let issuer = json.strings("authorization_servers").first,
            let server = try? FetchURL(issuer), server.mayBeNamed(by: url)
        else { throw Self.failure(url, "names no authorization server with https") }
        (identifier, path, self.issuer) = (text, resource.path, issuer)
        scopes = json.strings("scopes_supported").filter(\.isScope)
    }

    private static func failure(_ url: FetchURL, _ text: String) -> FetchFailure {
        FetchFailure(.loginFailed, "cannot find out where to log in for \(url.origin.text): its metadata \(text)")
    }
}
