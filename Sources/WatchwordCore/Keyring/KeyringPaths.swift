internal import WatchwordProtocol

/// The paths for which the keyring had items at the last lookup, by server.
///
/// At and below such a path, a credential of the session cache with a wider path is not used, because the keyring item
/// takes precedence (SEMANTICS rule 18).
struct KeyringPaths: Sendable {
    private struct Place: Sendable {
        let pattern: SpacePattern
        let account: Account
        let path: ExactText
    }

    private static let servers = 256

    private var places: [Challenger: [Place]] = [:]

    /// - Parameter usable: all items for the server whose credential may be sent.
    mutating func record(_ usable: [StoredCredential], at challenger: Challenger) {
        let named = usable.compactMap { stored in
            stored.credential?.path.map { Place(pattern: stored.pattern, account: stored.account, path: $0) }
        }
        if named.isEmpty {
            places[challenger] = nil
        } else if places.count < Self.servers || places[challenger] != nil {
            places[challenger] = named
        }
    }

    /// Called when the server has refused the credential for the path.
    mutating func forget(_ path: ExactText?, at challenger: Challenger) {
        guard let path else { return }
        places[challenger]?.removeAll { $0.path == path }
    }

    /// Called when a respondent supplied another credential for `requested` and the server accepted it. The paths that
    /// cover `requested` are dropped from this record, so that later fetches use that credential and do not ask again.
    mutating func overrule(for requested: ExactText, in space: ProtectionSpace) {
        places[Challenger(space)]?.removeAll {
            $0.pattern.matches(space) && PathRange.path($0.path, mayCover: requested)
        }
    }

    /// Whether there may be an item for `requested` that is narrower than `credential`.
    /// - Parameter user: the user that the fetch names, if any; items of other users do not count.
    func hasNarrower(
        than credential: LoginCredential, for requested: ExactText, in space: ProtectionSpace, user: Account?
    ) -> Bool {
        (places[Challenger(space)] ?? []).contains { place in
            PathRange.length(of: place.path) > credential.pathLength && place.pattern.matches(space)
                && (user?.admits(place.account) ?? true) && PathRange.path(place.path, mayCover: requested)
        }
    }
}
