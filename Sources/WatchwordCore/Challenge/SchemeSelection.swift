internal import WatchwordProtocol

/// One challenge that the broker can answer, with all that answering it takes.
enum AnswerableChallenge: Sendable, Equatable {
    case basic(realm: String)
    case digest(DigestChallenge)

    /// `nil` for a scheme that the broker does not know, and for a challenge that it must not answer.
    init?(_ challenge: SchemeChallenge) {
        guard !challenge.hasDuplicateParameters else { return nil }
        switch challenge.authenticationMethod {
        case .httpBasic:
            // RFC 7617 section 2 requires a realm; without one there is no protection space to keep a password to.
            guard let realm = challenge.realm else { return nil }
            self = .basic(realm: realm)
        case .httpDigest:
            guard let digest = DigestChallenge(challenge) else { return nil }
            self = .digest(digest)
        default:
            return nil
        }
    }

    var realm: String {
        switch self {
        case .basic(let realm): realm
        case .digest(let challenge): challenge.realm
        }
    }

    var authenticationMethod: AuthenticationMethod {
        switch self {
        case .basic: .httpBasic
        case .digest: .httpDigest
        }
    }

    /// RFC 9110 section 11.4: the most secure scheme counts, not the server's order.
    var strength: Int {
        switch self {
        case .basic: 0
        case .digest(let challenge): 1 + challenge.algorithm.strength
        }
    }

    func protectionSpace(at origin: Origin) -> ProtectionSpace {
        ProtectionSpace(
            scheme: origin.scheme.rawValue, host: origin.host, port: origin.port, realm: realm,
            authenticationMethod: authenticationMethod)
    }
}

/// What a response that challenges offers.
struct OfferList: Sendable, Equatable {
    /// For the client: everything, in the server's order.
    let offers: [Offer]
    /// Strongest first; the server's order among equals.
    let answerable: [AnswerableChallenge]

    init(_ challenges: [SchemeChallenge], allowed: [AuthenticationMethod]?) {
        var offers: [Offer] = []
        var answerable: [AnswerableChallenge] = []
        for challenge in challenges {
            let answer = AnswerableChallenge(challenge)
            offers.append(Offer(challenge, supported: answer != nil))
            if let answer, allowed?.contains(answer.authenticationMethod) ?? true { answerable.append(answer) }
        }
        self.offers = offers
        self.answerable = answerable.enumerated()
            .sorted { ($1.element.strength, $0.offset) < ($0.element.strength, $1.offset) }
            .map(\.element)
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
    }
}
