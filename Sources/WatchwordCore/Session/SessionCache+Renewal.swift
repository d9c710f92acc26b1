internal import WatchwordProtocol

/// Tokens that the broker renews before they expire.
extension SessionCache {
    /// Whether a token was used after `time`.
    func wasUsed(_ token: LoginCredential, since time: Duration) -> Bool {
        accepted.all.contains { $0.credential.isSame(as: token) && $0.lastUse > time }
    }

    /// Replaces a token by its successor, wherever it was accepted.
    mutating func replace(_ token: LoginCredential, with next: LoginCredential) {
        guard next.secret.isLocked else { return }
        replaceAccepted { credential in
            guard credential.isSame(as: token) else { return }
            var next = next
            next.scope = next.scope ?? credential.scope
            credential = next
        }
    }
}
