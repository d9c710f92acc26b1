internal import WatchwordProtocol

/// The parameters of a request for a token that say what the token is for.
struct TokenTarget: Sendable {
    /// The value of `resource` in requests (RFC 8707).
    var resource: String?
    var scopes: [String]
    /// The path of the resource, if it was found by its metadata.
    var path: ExactText?

    typealias Parameter = (name: String, value: Secret)

    var resourceParameter: [Parameter] { Self.parameter("resource", resource) }

    var scopeParameter: [Parameter] { Self.parameter("scope", scopes.isEmpty ? nil : scopes.joined(separator: " ")) }

    private static func parameter(_ name: String, _ value: String?) -> [Parameter] {
        value.map { [(name, Secret(joining: [.text($0)]))] } ?? []
    }
}
