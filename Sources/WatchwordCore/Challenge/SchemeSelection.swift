internal import WatchwordProtocol

/// A challenge that can be answered, with the parameters needed for that.
enum AnswerableChallenge: Sendable, Equatable {
    /// RFC 7617 section 2 requires a realm, but old servers and proxies omit it; such a challenge has a protection
    /// space of its own.
    case basic(realm: ExactText?)
    indirect case digest(DigestChallenge)
    /// RFC 6750. `isInsufficient`: the token that was sent may be valid, but not for this scope.
    case bearer(realm: ExactText?, scope: BearerScope? = nil, isInsufficient: Bool = false)
    /// NTLM (MS-NLMP) over HTTP; the transfer adapter performs the rounds.
    case ntlm
    /// RFC 4559, with Kerberos only; the transfer adapter performs the rounds.
    case negotiate
    /// A scheme that the broker does not implement: a respondent supplies the value of the header field.
    indirect case other(SchemeChallenge)
    /// User and password for SOCKS (RFC 1929), after a proxy refused a connection without them.
    case socks

    /// Returns `nil` for a challenge that the broker must not answer; `refusal` returns the reason.
    init?(
        _ challenge: SchemeChallenge, at challenger: Challenger, isReadable: Bool = false, _ rules: SchemeRules
    ) {
        guard Self.refusal(of: challenge, at: challenger, isReadable: isReadable, rules) == nil else { return nil }
        switch challenge.authenticationMethod {
        case .httpBasic:
            self = .basic(realm: challenge.realm)
        case .httpDigest:
            guard let digest = DigestChallenge(challenge) else { return nil }
            self = .digest(digest)
        case .bearer:
            self = .bearer(
                realm: challenge.realm, scope: BearerScope(challenge["scope"]),
                isInsufficient: challenge["error"] == "insufficient_scope")
        case .ntlm:
            self = .ntlm
        case .negotiate:
            self = .negotiate
        case .other:
            self = .other(challenge)
        case .clientCertificate, .serverTrust:
            return nil
        }
    }

    /// Returns the reason why a challenge must not be answered; `nil` if it may be answered.
    static func refusal(
        of challenge: SchemeChallenge, at challenger: Challenger, isReadable: Bool, _ rules: SchemeRules
    ) -> Unanswered.Reason? {
        let method = challenge.authenticationMethod
        if challenge.hasDuplicateParameters { return .malformed }  // guard: challenge-duplicate-parameters
        if let reason = rules.refusal(of: method, at: challenger) { return reason }
        if !rules.allowsWeak, let weakness = challenge.weaknesses.first {  // guard: weak-forbidden
            return switch weakness {
            case .noRealm: .noRealm
            case .noQop: .noQop
            case .unquotedRealm: .excluded
            }
        }
        return switch method {
        case .httpDigest: DigestChallenge.refusal(of: challenge)
        // Anyone who reads a token can use it (RFC 6750 section 5.3).
        case .bearer: isReadable ? .needsTLS : nil  // guard: bearer-in-the-clear
        case .httpBasic, .ntlm, .negotiate, .other: nil
        case .clientCertificate, .serverTrust: .malformed
        }
    }

    var realm: ExactText? {
        switch self {
        case .basic(let realm): realm
        case .digest(let challenge): challenge.realm
        case .bearer(let realm, _, _): realm
        case .other(let challenge): challenge.realm
        case .ntlm, .negotiate, .socks: nil
        }
    }

    var authenticationMethod: AuthenticationMethod {
        switch self {
        case .basic, .socks: .httpBasic
        case .digest: .httpDigest
        case .bearer: .bearer
        case .ntlm: .ntlm
        case .negotiate: .negotiate
        case .other: .other
        }
    }

    /// The rank of the scheme: the most secure one is used, whatever the server's order (RFC 9110 section 11.4). NTLM
    /// ranks below Basic, because its messages can be relayed and attacked offline. Bearer ranks below both, because
    /// few people can type a token; an existing token ranks above Digest (`strengthOfToken`). Digest of RFC 2069 ranks
    /// below every other Digest, but above Basic, because it hides the password. Basic without a realm comes last,
    /// because no realm limits where its password is sent.
    var strength: Int {
        switch self {
        case .negotiate: 10
        case .digest(let challenge): challenge.protection == .legacy ? 5 : 6 + challenge.algorithm.strength
        case .basic(realm: .some), .socks: 4
        case .ntlm: 3
        case .bearer: 2
        case .other: 1
        case .basic(realm: nil): 0
        }
    }

    /// The strength of an existing token: above every Digest, below Kerberos tickets.
    static let strengthOfToken = 9

    /// Whether the broker does not know the scheme, which may authenticate the connection instead of the request.
    var isUnknown: Bool {
        if case .other = self { true } else { false }
    }

    /// Whether the scheme authenticates the connection rather than the request.
    var isHandshake: Bool {
        switch self {
        case .ntlm, .negotiate: true
        case .basic, .digest, .bearer, .other, .socks: false
        }
    }

    func protectionSpace(at challenger: Challenger) -> ProtectionSpace {
        challenger.space(realm: realm, authenticationMethod)
    }

    /// The scope that a token needs.
    var scope: BearerScope? {
        if case .bearer(_, let scope, _) = self { scope } else { nil }
    }

    var digest: DigestChallenge? {
        if case .digest(let challenge) = self { challenge } else { nil }
    }

    /// The name of the scheme in lower case.
    var scheme: String {
        switch self {
        case .basic, .socks: "basic"
        case .digest: "digest"
        case .bearer: "bearer"
        case .ntlm: "ntlm"
        case .negotiate: "negotiate"
        case .other(let challenge): challenge.scheme.asciiLowercased
        }
    }

    /// Returns why the credential cannot be sent; `nil` if it can.
    func problem(with credential: LoginCredential, at challenger: Challenger) -> Challenge.AnswerProblem? {
        switch (self, credential.form) {
        case (.basic, .password):
            BasicScheme.canCarry(credential) ? nil : .credentialNotUsable
        case (.digest(let challenge), .password):
            challenge.charset.bytes(of: credential) != nil ? nil : .credentialNotUsable
        case (.socks, .password):
            // Each length is one byte (RFC 1929 section 2).
            credential.user.utf8.count <= 255 && credential.secret.count <= 255 ? nil : .credentialNotUsable
        case (.ntlm, .password), (.negotiate, .tickets): nil
        case (.bearer(_, let scope, _), .token): scope.map(credential.serves) ?? true ? nil : .credentialNotUsable
        case (.ntlm, _), (.negotiate, _), (.socks, _): .credentialOfWrongType
        case (_, .header(let name, _)): name.string.asciiLowercased == scheme ? nil : .credentialOfWrongType
        default: .credentialOfWrongType
        }
    }

    func canCarry(_ credential: LoginCredential, at challenger: Challenger) -> Bool {
        problem(with: credential, at: challenger) == nil
    }
}

/// The offers of a response with challenges.
struct OfferList: Sendable, Equatable {
    let challenger: Challenger
    /// All challenges in the server's order, for the client.
    let offers: [Offer]
    /// The best first: by strength or in the configured order, then without weaknesses, then in the server's order.
    let answerable: [AnswerableChallenge]
    /// Every scheme in the server's order; schemes of malformed challenges come last.
    let verdicts: [Verdict]

    /// Whether the challenge of one scheme can be answered.
    struct Verdict: Sendable, Equatable {
        let scheme: String
        /// `nil` if the challenge can be answered.
        var refusal: Unanswered.Reason?
        var isNegotiate = false
    }

    /// - Parameter malformed: the schemes of malformed challenges.
    /// - Parameter allowed: the schemes that the fetch may use; `nil` for all.
    /// - Parameter allowsHandshake: whether a connection-level login on this connection would reach this challenger and
    ///   no other (RFC 4559 section 6).
    /// - Parameter isReadable: whether others on the network can read the connection.
    init(
        _ challenges: [SchemeChallenge], malformed: [String] = [], by challenger: Challenger,
        allowed: [AuthenticationMethod]?, allowsHandshake: Bool = true, isReadable: Bool = false, _ rules: SchemeRules
    ) {
        self.challenger = challenger
        var verdicts: [Verdict] = []
        var offers: [Offer] = []
        var answerable: [(challenge: AnswerableChallenge, isWeak: Bool)] = []
        for challenge in challenges {
            var answer = AnswerableChallenge(challenge, at: challenger, isReadable: isReadable, rules)
            if answer?.isHandshake == true && !allowsHandshake { answer = nil }
            let isOurs = answer.map { $0.authenticationMethod != .other } ?? false
            offers.append(Offer(challenge, supported: isOurs))
            let isAllowed = allowed?.contains(challenge.authenticationMethod) ?? true
            if let answer, isAllowed { answerable.append((answer, !challenge.weaknesses.isEmpty)) }
            let refusal = AnswerableChallenge.refusal(of: challenge, at: challenger, isReadable: isReadable, rules)
            verdicts.append(
                Verdict(
                    scheme: challenge.scheme, refusal: refusal ?? (answer == nil || !isAllowed ? .excluded : nil),
                    isNegotiate: answer == .negotiate))
        }
        self.offers = offers
        self.verdicts = verdicts + malformed.map { Verdict(scheme: $0, refusal: .malformed) }
        let order = rules.order(for: challenger)
        let ranks = answerable.enumerated().map { offset, one in
            (one.challenge.rank(order, isReadable), one.isWeak ? 1 : 0, offset)
        }
        self.answerable = ranks.sorted(by: <).map { answerable[$0.2].challenge }
    }

    /// No offers.
    init(of challenger: Challenger) { (self.challenger, offers, answerable, verdicts) = (challenger, [], [], []) }

    /// The offer of a SOCKS proxy that requires user and password (RFC 1928 section 3).
    init(socks proxy: ProxyEndpoint) {
        challenger = .proxy(proxy)
        offers = []
        answerable = [.socks]
        verdicts = []
    }
}

extension AnswerableChallenge {
    /// Returns the sort key, lowest first. With a configured order, Basic without a realm, and any Basic on a readable
    /// connection, ranks after all configured schemes.
    fileprivate func rank(_ order: [AuthenticationMethod]?, _ isReadable: Bool) -> Int {
        guard let order else { return -strength }
        if self == .basic(realm: nil) { return order.count }
        if authenticationMethod == .httpBasic && isReadable { return order.count }
        return order.firstIndex(of: authenticationMethod) ?? order.count
    }
}

extension Offer {
    init(_ challenge: SchemeChallenge, supported: Bool) {
        var params: [String: String] = [:]
        for parameter in challenge.parameters where parameter.name != "realm" && params[parameter.name] == nil {
            params[parameter.name] = parameter.value
        }
        self.init(
            scheme: challenge.scheme, realm: challenge.realm, params: params, raw: challenge.raw, supported: supported)
        weak = challenge.weaknesses
    }
}

extension LoginCredential {
    /// Whether a token may be valid for `wanted`, as far as known.
    fileprivate func serves(_ wanted: BearerScope) -> Bool { scope?.covers(wanted) ?? true }
}
