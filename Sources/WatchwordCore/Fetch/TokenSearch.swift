internal import WatchwordProtocol

/// The search of one fetch for a token of one server: the last outcome, and the scopes that were too narrow.
struct TokenSearch: Sendable, Equatable {
    private struct TooNarrow: Sendable, Equatable {
        let credential: LoginCredential
        let realm: ExactText?
        /// The scope that the server requires; `nil` if it has named none.
        let scope: BearerScope?
    }

    /// The last outcome, until it is of no more use.
    var outcome: TokenOutcome?
    /// Whether a token was renewed because the server had answered the previous one without a challenge.
    var hasRenewed = false
    /// Whether a person has logged in for this fetch. It does not ask twice.
    var hasLoggedIn = false
    /// The epoch of the grants of consent when a person was asked to log in.
    var consentEpoch: Int?
    private var tooNarrow: [TooNarrow] = []
    private var purposes: Set<TokenQuery.Purpose> = []
    private var hasWidened = false

    /// Returns `false` if a token was obtained for this purpose before, or a wider one was, and this should be wider again.
    mutating func begin(_ query: TokenQuery) -> Bool {
        outcome = nil
        if query.challenge.isInsufficient, query.rule.flow != .registry {
            guard !hasWidened else { return false }
            hasWidened = true
        }
        return purposes.insert(query.purpose).inserted
    }

    mutating func recordTooNarrow(_ token: LoginCredential, for wanted: AnswerableChallenge) {
        tooNarrow.append(TooNarrow(credential: token, realm: wanted.realm, scope: wanted.scope))
    }

    /// Whether this fetch knows that the scope of the token is insufficient for `challenge`.
    func isTooNarrow(_ token: LoginCredential, for challenge: AnswerableChallenge) -> Bool {
        tooNarrow.contains { known in
            guard challenge.authenticationMethod == .bearer, known.realm == challenge.realm else { return false }
            let matches = known.scope.map { challenge.scope?.covers($0) ?? false } ?? true
            return matches && known.credential.isSame(as: token)
        }
    }
}
