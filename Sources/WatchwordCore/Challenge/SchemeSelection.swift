internal import WatchwordProtocol

/// One challenge that the broker can answer, with all that answering it takes.
enum AnswerableChallenge: Sendable, Equatable {
    /// Old servers and proxies leave out the realm, which RFC 7617 section 2 requires: then it is a space of its own.
    case basic(realm: ExactText?)
    indirect case digest(DigestChallenge)
    /// RFC 6750; the token that was sent may have been right, and not good for this.
    case bearer(realm: ExactText?, scope: BearerScope? = nil, isInsufficient: Bool = false)
    /// MS-NLMP over HTTP; the rounds are the adapter's.
    case ntlm
    /// RFC 4559, with Kerberos only; the rounds are the adapter's.
    case negotiate
    /// A scheme that only the client knows how to answer.
    indirect case other(SchemeChallenge)
    /// User and password of RFC 1929: no header asks for them, but a proxy that does not go on.
    case socks

    /// `nil` for a challenge that the broker must not answer; `refusal` says why.
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

    /// Why a challenge must not be answered; `nil` where it may be.
    static func refusal(
        of challenge: SchemeChallenge, at challenger: Challenger, isReadable: Bool, _ rules: SchemeRules
    ) -> Unanswered.Reason? {
        let method = challenge.authenticationMethod
        if challenge.hasDuplicateParameters { return .malformed }
        if let reason = rules.refusal(of: method, at: challenger) { return reason }
        if !rules.allowsWeak, let weakness = challenge.weaknesses.first {
            return switch weakness {
            case .noRealm: .noRealm
            case .noQop: .noQop
            case .unquotedRealm: .excluded
            }
        }
        return switch method {
        case .httpDigest: DigestChallenge.refusal(of: challenge)
        // RFC 6750 section 5.3: whoever reads a token can use it.
        case .bearer: isReadable ? .needsTLS : nil
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

    /// RFC 9110 section 11.4: the most secure scheme counts, not the server's order. NTLM comes after Basic: what it sends can
    /// be relayed, and guessed offline by whoever has seen it. Bearer is asked for after these, because few people can type a
    /// token, and tried before Digest where there is one. Digest of RFC 2069 comes after every other Digest, but hides the
    /// password, which Basic does not; Basic without a realm, whose password nothing keeps to one place, comes last.
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

    /// That of a token that is at hand: above every Digest, below tickets.
    static let strengthOfToken = 9

    /// The connection is logged in, not the request.
    var isHandshake: Bool { self == .ntlm || self == .negotiate }

    func protectionSpace(at challenger: Challenger) -> ProtectionSpace {
        challenger.space(realm: realm, authenticationMethod)
    }

    /// What a token has to be good for.
    var scope: BearerScope? {
        if case .bearer(_, let scope, _) = self { scope } else { nil }
    }

    var digest: DigestChallenge? {
        if case .digest(let challenge) = self { challenge } else { nil }
    }

    /// The name of the scheme, in small letters.
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

    /// Why an answer cannot be sent; `nil` where it can.
    func problem(with credential: LoginCredential, at challenger: Challenger) -> Challenge.AnswerProblem? {
        switch (self, credential.form) {
        case (.basic, .password):
            BasicScheme.canCarry(credential) ? nil : .credentialNotUsable
        case (.digest(let challenge), .password):
            challenge.charset.bytes(of: credential) != nil ? nil : .credentialNotUsable
        case (.socks, .password):
            // RFC 1929 section 2: one byte for the length of each.
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

/// What a response that challenges offers.
struct OfferList: Sendable, Equatable {
    let challenger: Challenger
    /// For the client: everything, in the server's order.
    let offers: [Offer]
    /// The best first; the server's order among equals.
    let answerable: [AnswerableChallenge]
    /// Every scheme in the server's order, those of malformed fields last.
    let verdicts: [Verdict]

    /// What can be done about one challenge.
    struct Verdict: Sendable, Equatable {
        let scheme: String
        /// `nil` where the challenge can be answered.
        var refusal: Unanswered.Reason?
        var isNegotiate = false
    }

    /// - Parameters:
    ///   - allowed: schemes that the fetch may use; `nil` for all.
    ///   - malformed: the schemes of fields that could not be read.
    ///   - isReadable: whether everybody on the way can read what is sent.
    ///   - keepsConnection: whether what logs in a connection logs in the one to the challenger (RFC 4559 section 6).
    init(
        _ challenges: [SchemeChallenge], malformed: [String] = [], by challenger: Challenger,
        allowed: [AuthenticationMethod]?, keepsConnection: Bool = true, isReadable: Bool = false, _ rules: SchemeRules
    ) {
        self.challenger = challenger
        var verdicts: [Verdict] = []
        var offers: [Offer] = []
        var answerable: [(challenge: AnswerableChallenge, isWeak: Bool)] = []
        for challenge in challenges {
            var answer = AnswerableChallenge(challenge, at: challenger, isReadable: isReadable, rules)
            if answer?.isHandshake == true && !keepsConnection { answer = nil }
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

    /// Of a proxy that does not go on without user and password (RFC 1928 section 3).
    init(socks proxy: ProxyEndpoint) {
        challenger = .proxy(proxy)
        offers = []
        answerable = [.socks]
        verdicts = []
    }
}

extension AnswerableChallenge {
    /// The lowest is tried first. Where it can be read on the way, Basic outranks nothing, whatever the order says.
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
    /// Whether a token may be good for `wanted`, as far as is known.
    fileprivate func serves(_ wanted: BearerScope) -> Bool { scope?.covers(wanted) ?? true }
}
