public import WatchwordProtocol

/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 section 11.3): a scheme with
/// parameters, or with one token68.
public struct SchemeChallenge: Sendable, Equatable {
    public var scheme: String
    /// The parameters in order, with lower-case names and unquoted values.
    public var parameters: [Parameter]
    public var token68: String?
    /// The text as the server sent it.
    public var raw: String
    /// Set if a parameter occurs twice, against RFC 9110 section 11.2. Such a challenge is reported to the client, but
    /// never answered.
    public var hasDuplicateParameters: Bool
    /// Set if the realm is not quoted, against RFC 9110 section 11.5.
    public var hasUnquotedRealm = false

    public struct Parameter: Sendable, Equatable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Returns the value of a parameter.
    /// - Parameter name: in lower case.
    public subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    public var realm: ExactText? { self["realm"].map { ExactText($0) } }

    public var authenticationMethod: AuthenticationMethod { AuthenticationMethod(scheme: scheme) }

    /// The deviations from current standards (SEMANTICS rule 27).
    public var weaknesses: [Offer.Weakness] {
        var found: [Offer.Weakness] = []
        if authenticationMethod == .httpBasic && realm == nil { found.append(.noRealm) }
        if authenticationMethod == .httpDigest && self["qop"] == nil { found.append(.noQop) }
        if hasUnquotedRealm { found.append(.unquotedRealm) }
        return found
    }
}

/// The challenge fields of a response.
public enum ChallengeHeader {
    /// Parses all challenges of all `fields`, in order; malformed ones are skipped.
    public static func parse(fields: [String]) -> [SchemeChallenge] { read(fields).challenges }

    /// Parses all challenges, and returns the schemes of the malformed ones too; empty where the scheme is malformed.
    static func read(_ fields: [String]) -> (challenges: [SchemeChallenge], malformed: [String]) {
        var challenges: [SchemeChallenge] = []
        var malformed: [String] = []
        var bytes = 0
        for field in fields {
            bytes += field.headerByteCount
            guard bytes <= Limits.challengeHeaderBytes else { break }
            var parser = ChallengeFieldParser(field)
            challenges += parser.parse()
            malformed += parser.malformed
        }
        let most = Limits.challengesPerResponse
        return (Array(challenges.prefix(most)), Array(malformed.prefix(most)))
    }
}
