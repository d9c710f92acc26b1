internal import WatchwordProtocol

/// The strongest scheme that a server has accepted for each realm since the broker started (RFC 7616 section 5.6 and rule
/// D19). It outlives what the session keeps, and holds no credential. Bounded: the oldest realm is dropped first.
struct AcceptedStrength: Sendable {
    private struct Key: Hashable {
        let challenger: Challenger
        let realm: ExactText?
    }

    private static let capacity = 1024

    private var strongest: [Key: Int] = [:]
    private var order: [Key] = []

    mutating func note(_ challenge: AnswerableChallenge, at challenger: Challenger) {
        let key = Key(challenger: challenger, realm: challenge.realm)
        let known = strongest[key]
        if known == nil { order.append(key) }
        strongest[key] = max(known ?? 0, challenge.provenStrength)
        if order.count > Self.capacity { strongest[order.removeFirst()] = nil }
    }

    /// Whether the server has done better before: then what is stored is not for this challenge, but somebody may answer it.
    func isDowngrade(_ challenge: AnswerableChallenge, at challenger: Challenger) -> Bool {
        challenge.provenStrength < strongest[Key(challenger: challenger, realm: challenge.realm)] ?? 0
    }
}

extension AnswerableChallenge {
    /// A token is strong once there is one.
    fileprivate var provenStrength: Int {
        if case .bearer = self { Self.strengthOfToken } else { strength }
    }
}
