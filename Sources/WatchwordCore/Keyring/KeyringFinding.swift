internal import WatchwordProtocol

/// The items of the keyring that may be used at one place of a server, and fit it best.
struct KeyringMatches: Sendable {
    /// Equally good.
    let best: [StoredCredential]

    /// - Parameters:
    ///   - user: the account that the fetch names, if any.
    ///   - time: of the wall clock, since 1970.
    init(
        _ items: [KeyringItem], at challenger: Challenger, path: ExactText, user: Account?, time: Duration = .zero,
        fitting isFitting: (SpacePattern) -> Bool
    ) {
        let usable = items.compactMap { StoredCredential($0, at: challenger) }.filter { stored in
            guard let credential = stored.credential, isFitting(stored.pattern) else { return false }
            return (user?.admits(stored.account) ?? true) && credential.covers(path)
                && !credential.isExpired(at: time)
        }
        let highest = usable.map(\.rank).max()
        best = usable.filter { $0.rank == highest }
    }
}

/// What a look-up in the keyring comes to for one space.
enum KeyringFinding: Sendable, Equatable {
    case none
    /// The one that fits best.
    case credential(LoginCredential, item: String, isExact: Bool)
    /// Several fit equally well: whoever is asked decides.
    case undecided

    /// The item that fits best, and never a guess between equals.
    init(
        _ items: [KeyringItem], for space: ProtectionSpace, at challenger: Challenger, path: ExactText, user: Account?,
        time: Duration = .zero
    ) {
        let matches = KeyringMatches(items, at: challenger, path: path, user: user, time: time) { $0.matches(space) }
        self.init(matches) { $0.isExact(for: space) }
    }

    init(_ matches: KeyringMatches, exactly isExact: (StoredCredential) -> Bool) {
        guard let chosen = Self.choose(matches.best), let credential = chosen.credential else {
            self = matches.best.isEmpty ? .none : .undecided
            return
        }
        self = .credential(credential, item: chosen.item.id, isExact: isExact(chosen))
    }

    private static func choose(_ equals: [StoredCredential]) -> StoredCredential? {
        guard let first = equals.first else { return nil }
        if equals.allSatisfy({ $0.account == first.account && $0.item.secret == first.item.secret }) { return first }
        let preferred = equals.filter(\.isPreferred)
        return preferred.count == 1 ? preferred[0] : nil
    }
}

extension StoredCredential {
    /// The narrower path first (semantics rule 18); then exact port and realm, the method, and the scheme.
    fileprivate var rank: Int {
        let pathLength = credential?.pathLength ?? 0
        return 16 * pathLength + (namesPort ? 8 : 0) + (pattern.realm != nil ? 4 : 0)
            + (pattern.authenticationMethod != nil ? 2 : 0) + (namesScheme ? 1 : 0)
    }
}
