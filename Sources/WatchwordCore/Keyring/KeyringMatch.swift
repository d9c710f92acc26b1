internal import WatchwordProtocol

/// The usable keyring items that match a request best.
struct KeyringMatches: Sendable {
    /// The items of the highest rank; empty if `isAmbiguous`.
    let best: [StoredCredential]
    /// Whether a narrower item might be meant, because a server might read the path as one of its own.
    let isAmbiguous: Bool

    /// - Parameter user: the user that the fetch names, if any.
    /// - Parameter time: the wall-clock time since 1970.
    init(
        _ items: [KeyringItem], at challenger: Challenger, path: ExactText, user: Account?, time: Duration = .zero,
        fitting isFitting: (SpacePattern) -> Bool
    ) {
        let usable = items.compactMap { StoredCredential($0, at: challenger) }.filter { stored in
            guard let credential = stored.credential, isFitting(stored.pattern) else { return false }
            return (user?.admits(stored.account) ?? true) && !credential.isExpired(at: time)
        }
        let covering = usable.filter { $0.credential?.covers(path) ?? false }
        let highest = covering.map(\.rank).max()
        let length = covering.compactMap(\.credential?.pathLength).max() ?? 0
        // guard: keyring-ambiguous-path
        isAmbiguous = usable.contains { $0.credential?.mayPrecede(length, at: path, for: user) ?? false }
        best = isAmbiguous ? [] : covering.filter { $0.rank == highest }
    }
}

/// The result of a keyring lookup for one space.
enum KeyringMatch: Sendable, Equatable {
    case none
    /// The best match.
    case credential(LoginCredential, item: String, isExact: Bool)
    /// Several items match equally, or might; the respondent has to decide.
    case undecided

    /// Selects the best match, and never guesses between equal ones.
    init(
        _ items: [KeyringItem], for space: ProtectionSpace, at challenger: Challenger, path: ExactText, user: Account?,
        time: Duration = .zero
    ) {
        let matches = KeyringMatches(items, at: challenger, path: path, user: user, time: time) { $0.matches(space) }
        self.init(matches) { $0.isExact(for: space) }
    }

    init(_ matches: KeyringMatches, exactly isExact: (StoredCredential) -> Bool) {
        guard let chosen = Self.choose(matches.best), let credential = chosen.credential else {
            self = matches.best.isEmpty && !matches.isAmbiguous ? .none : .undecided
            return
        }
        self = .credential(credential, item: chosen.item.id, isExact: isExact(chosen))
    }

    private static func choose(_ equals: [StoredCredential]) -> StoredCredential? {
        guard let first = equals.first else { return nil }
        if equals.allSatisfy({ $0.account == first.account && $0.item.secret == first.item.secret }) { return first }
        let preferred = equals.filter(\.isPreferred)
        return preferred.count == 1 ? preferred[0] : nil  // guard: keyring-no-guess
    }
}

extension StoredCredential {
    /// The narrowest path ranks first (SEMANTICS rule 18), then an exact port, the realm, the method, and the scheme.
    fileprivate var rank: Int {
        let pathLength = credential?.pathLength ?? 0
        return 16 * pathLength + (namesPort ? 8 : 0) + (pattern.realm != nil ? 4 : 0)
            + (pattern.authenticationMethod != nil ? 2 : 0) + (namesScheme ? 1 : 0)
    }
}
