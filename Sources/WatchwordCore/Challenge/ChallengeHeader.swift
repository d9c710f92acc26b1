public import WatchwordProtocol

/// One challenge as it stands in a `WWW-Authenticate` field (RFC 9110 section 11.3): a scheme with parameters, or with one
/// token68.
public struct SchemeChallenge: Sendable, Equatable {
    public var scheme: String
    /// Names in small letters, values unquoted, in order.
    public var parameters: [Parameter]
    public var token68: String?
    /// As the server wrote it.
    public var raw: String
    /// RFC 9110 section 11.2 allows each name once. A challenge that breaks it is shown, and never answered.
    public var hasDuplicateParameters: Bool
    /// The realm stood without quotation marks, which RFC 9110 section 11.5 requires.
    public var hasUnquotedRealm = false

    public struct Parameter: Sendable, Equatable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The value of the parameter `name`, which is in small letters.
    public subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    public var realm: ExactText? { self["realm"].map { ExactText($0) } }

    public var authenticationMethod: AuthenticationMethod { AuthenticationMethod(scheme: scheme) }

    /// What is old or sloppy about it (semantics rule 27).
    public var weaknesses: [Offer.Weakness] {
        var found: [Offer.Weakness] = []
        if authenticationMethod == .httpBasic && realm == nil { found.append(.noRealm) }
        if authenticationMethod == .httpDigest && self["qop"] == nil { found.append(.noQop) }
        if hasUnquotedRealm { found.append(.unquotedRealm) }
        return found
    }
}

/// The fields of a response that challenge.
public enum ChallengeHeader {
    /// All challenges of all `fields` in order; malformed ones are left out.
    public static func parse(fields: [String]) -> [SchemeChallenge] { read(fields).challenges }

    /// The same, and beside them the schemes of the malformed ones; empty where one has no name.
    static func read(_ fields: [String]) -> (challenges: [SchemeChallenge], malformed: [String]) {
        var challenges: [SchemeChallenge] = []
        var malformed: [String] = []
        var bytes = 0
        for field in fields {
            bytes += field.utf8.count
            guard bytes <= Limits.challengeHeaderBytes else { break }
            var parser = ChallengeFieldParser(field)
            challenges += parser.parse()
            malformed += parser.malformed
        }
        let most = Limits.challengesPerResponse
        return (Array(challenges.prefix(most)), Array(malformed.prefix(most)))
    }
}
