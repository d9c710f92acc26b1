internal import WatchwordProtocol

/// The strongest schemes that servers and proxies have accepted since the broker started. A weaker challenge gets no
/// stored credential (RFC 7616 section 5.6 and SECURITY-RULES D19).
///
/// This record outlives the entries of the session cache and contains no credential. Bounded: the strength of a dropped
/// realm applies to all realms of its server, and the server that was recorded first is dropped first.
struct AcceptedStrength: Sendable {
    /// The realms whose accepted strength counts for a stored credential.
    enum Reach: Sendable {
        /// Only the realm of the challenge.
        case realm
        /// All realms of the server, for a stored credential without a realm.
        case server

        // guard: downgrade-across-realms
        init(_ pattern: SpacePattern) { self = pattern.realm == nil ? .server : .realm }
    }

    private struct Place: Sendable {
        let path: ExactText
        let strength: Int

        /// Returns the length in bytes of the directory that contains `self.path`; `nil` if `path` is not in or below
        /// that directory.
        /// - Parameter isPossible: see `SessionEntry.matchLength`.
        func depth(above path: ExactText, isPossible: Bool = false) -> Int? {
            let covers = isPossible ? PathRange.path(_:mayCover:) : PathRange.path(_:covers:)
            let directory = URLComponentText.directory(of: self.path)
            return covers(directory, path) ? PathRange.length(of: directory) : nil
        }
    }

    private struct Realm: Sendable {
        let name: ExactText?
        var strongest = 0
        /// The strength of the strongest accepted scheme that uses a password.
        var strongestOfPasswords = 0
        var places: [Place] = []

        mutating func record(_ challenge: AnswerableChallenge, at path: ExactText) {
            let strength = challenge.provenStrength
            if let last = places.last, last.strength == strength, last.path == path { return }
            strongest = max(strongest, strength)
            if challenge.takesPassword { strongestOfPasswords = max(strongestOfPasswords, strength) }
            if HiddenSegments.leadUp(in: path) { return }
            // Weaker schemes at this path are dropped, so that a return to one of them counts as a downgrade.
            places.removeAll { PathRange.areSame($0.path, path) && $0.strength <= strength }
            places.append(Place(path: path, strength: strength))
            guard places.count > AcceptedStrength.placesOfRealm else { return }
            // The path with the weakest scheme is dropped first: that can cause an extra prompt, but never a password
            // in the clear.
            let weakest = places.map(\.strength).min()
            places.remove(at: places.firstIndex { $0.strength == weakest } ?? 0)
        }
    }

    private struct Site: Sendable {
        var realms: [Realm] = []
        /// The strength of the strongest scheme accepted in any dropped realm.
        var floor = 0

        mutating func record(_ challenge: AnswerableChallenge, at path: ExactText) {
            let index = realms.firstIndex { $0.name == challenge.realm }
            if let index, index == realms.endIndex - 1 { return realms[index].record(challenge, at: path) }
            var realm = index.map { realms.remove(at: $0) } ?? Realm(name: challenge.realm, strongest: floor)
            realm.record(challenge, at: path)
            realms.append(realm)
            if realms.count > AcceptedStrength.realmsOfServer { floor = max(floor, realms.removeFirst().strongest) }
        }
    }

    private static let placesOfRealm = 16
    private static let realmsOfServer = 16
    private static let capacity = 1024

    private var sites: [Challenger: Site] = [:]
    private var order: [Challenger] = []

    /// Records that the challenger has accepted an answer to `challenge`.
    /// - Parameter path: the path of the request; `/` for a proxy.
    mutating func record(_ challenge: AnswerableChallenge, at challenger: Challenger, path: ExactText) {
        if let place = sites.index(forKey: challenger) { return sites.values[place].record(challenge, at: path) }
        order.append(challenger)
        sites[challenger, default: Site()].record(challenge, at: path)
        if order.count > Self.capacity { sites[order.removeFirst()] = nil }
    }

    /// Returns the realm in which the challenger has accepted a login at this path, or nearest to it, if the realm of the
    /// challenge is new; otherwise `nil`.
    func formerRealm(before challenge: AnswerableChallenge, at challenger: Challenger, path: ExactText) -> ExactText? {
        guard let site = sites[challenger], challenge.realm != nil,
            !site.realms.contains(where: { $0.name == challenge.realm })
        else { return nil }
        let known = site.realms.compactMap { realm in
            realm.places.compactMap { $0.depth(above: path) }.max().map { (name: realm.name, depth: $0) }
        }
        return known.max { $0.depth < $1.depth }?.name
    }

    /// Whether the challenger has accepted a stronger scheme before. If so, stored credentials are not used, but a
    /// respondent may answer.
    ///
    /// A weaker scheme is not a downgrade if it was accepted at exactly this path, or in a deeper directory than every
    /// stronger scheme: some servers use different schemes within one realm.
    func isDowngrade(  // guard: downgrade
        _ challenge: AnswerableChallenge, at challenger: Challenger, path: ExactText, reach: Reach
    ) -> Bool {
        guard let site = sites[challenger] else { return false }
        let strength = challenge.provenStrength
        let own = site.realms.first { $0.name == challenge.realm }
        let others = reach == .server ? site.realms.filter { $0.name != challenge.realm } : []
        let required = others.reduce(max(own?.strongest ?? 0, reach == .server || own == nil ? site.floor : 0)) {
            max($0, $1.strongestOfPasswords)
        }
        guard strength < required else { return false }
        guard let own else { return true }
        if own.places.contains(where: { PathRange.areSame($0.path, path) && $0.strength <= strength }) { return false }
        if HiddenSegments.leadUp(in: path) { return true }
        let weak = own.places.filter { $0.strength <= strength }.compactMap { $0.depth(above: path) }.max()
        let strong = (others + [own]).flatMap(\.places).filter { $0.strength > strength }
            .compactMap { $0.depth(above: path, isPossible: true) }.max()  // guard: downgrade-ambiguous-path
        return weak.map { $0 <= strong ?? -1 } ?? true
    }
}

extension AnswerableChallenge {
    /// The strength of an accepted answer. An accepted token ranks higher than a Bearer challenge.
    fileprivate var provenStrength: Int {
        if case .bearer = self { Self.strengthOfToken } else { strength }
    }

    /// Whether a user and a password can answer the challenge.
    var takesPassword: Bool {
        switch self {
        case .basic, .digest, .ntlm, .socks: true
        case .bearer, .negotiate, .other: false
        }
    }
}
