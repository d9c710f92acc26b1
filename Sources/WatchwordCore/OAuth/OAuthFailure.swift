internal import JSONText
internal import WatchwordProtocol

/// Parses the documents of authorization servers and resources.
enum OAuthDocument {
    /// The size limit of a document or reply, in bytes.
    static let largestSize = 256 << 10

    static func parse(_ body: [UInt8]) -> JSON? {
        guard body.count <= largestSize else { return nil }
        do throws(JSONFailure) {
            let json = try JSON.parse(body, limits: JSONLimits(depth: 16, values: 8192))
            return json.kind == .object ? json : nil
        } catch {
            return nil
        }
    }
}

extension JSON {
    /// The strings of a list; empty if the value is anything else.
    func strings(_ name: String) -> [String] { self[name]?.elements?.compactMap(\.string) ?? [] }

    /// The bytes of a string member, as a secret.
    func secret(_ name: String) -> Secret? { self[name]?.withUTF8 { Secret(copying: $0) } }
}

extension FetchFailure {
    /// - Parameter server: the URL of the authorization server.
    static func login(at server: String, _ text: String) -> FetchFailure {
        FetchFailure(.loginFailed, "cannot log in at \(DisplayURL.text(server)): \(text)")
    }
}

extension FetchURL {
    /// Whether tokens and metadata may be exchanged with this server: by https, or on this machine (RFC 6750 section
    /// 5.3).
    var isSecureEnough: Bool { origin.scheme == .https || origin.isLoopback }  // guard: oauth-https

    /// Whether this is a server to which a document of `namer` may refer: one without https only by one without it.
    // guard: oauth-loopback-named
    func mayBeNamed(by namer: FetchURL) -> Bool {
        origin.scheme == .https || origin.isLoopback && namer.origin.scheme == .http
    }
}
