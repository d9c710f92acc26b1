internal import WatchwordProtocol

/// The paths for which the keyring had items of their own when it was last looked up, by server.
///
/// A credential for the whole server that the session has is not used there: the item goes first (semantics rule 18).
struct KeyringPaths: Sendable {
    private struct Place: Sendable {
        let pattern: SpacePattern
        let account: Account
        let path: ExactText
    }

    private static let servers = 256

    private var places: [Challenger: [Place]] = [:]

    /// - Parameter usable: all that the keyring has for the server, and that may be sent.
    mutating func note(_ usable: [StoredCredential], at challenger: Challenger) {
        let named = usable.compactMap { stored in
            stored.credential?.path.map { Place(pattern: stored.pattern, account: stored.account, path: $0) }
        }
        if named.isEmpty {
            places[challenger] = nil
        } else if places.count < Self.servers || places[challenger] != nil {
            places[challenger] = named
        }
    }

    /// The server has refused what was there for the path.
    mutating func forget(_ path: ExactText?, at challenger: Challenger) {
        guard let path else { return }
        places[challenger]?.removeAll { $0.path == path }
    }

    /// Somebody has answered for `requested` with something else, and the server has accepted that: they are not asked
    /// about it at every fetch.
    mutating func overrule(for requested: ExactText, in space: ProtectionSpace) {
        places[Challenger(space)]?.removeAll {
            $0.pattern.matches(space) && LoginCredential.path($0.path, covers: requested)
        }
    }

    /// Whether there may be an item for `requested` that is narrower than `credential`.
    /// - Parameter user: the account that the fetch names, if any: those of others are not for it.
    func hasNarrower(
        than credential: LoginCredential, for requested: ExactText, in space: ProtectionSpace, user: Account?
    ) -> Bool {
        (places[Challenger(space)] ?? []).contains { place in
            place.path.utf8.count > credential.pathLength && place.pattern.matches(space)
                && (user?.admits(place.account) ?? true) && LoginCredential.path(place.path, covers: requested)
        }
    }
}
