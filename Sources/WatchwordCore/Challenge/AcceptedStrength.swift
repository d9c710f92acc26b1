internal import WatchwordProtocol

/// What servers and proxies have accepted since the broker started, so that a weaker scheme gets nothing that is stored (RFC 7616
/// section 5.6 and rule D19).
///
/// It outlives what the session keeps, and holds no credential. Bounded: what is forgotten about a realm counts against all
/// realms of its server, and the server that was noted first is dropped first.
struct AcceptedStrength: Sendable {
    /// The spaces that a stored credential is for, as far as the strength is concerned.
    enum Reach: Sendable {
        /// The realm of the challenge.
        case realm
        /// All realms of the server: a stored credential that names none.
        case server

        init(_ pattern: SpacePattern) { self = pattern.realm == nil ? .server : .realm }
    }

    private struct Place: Sendable {
        let path: ExactText
        let strength: Int

        /// The length of the directory that the place is in; `nil` where `path` is elsewhere.
        func depth(above path: ExactText) -> Int? {
            let directory = URLComponentText.directory(of: self.path)
            return path.hasPrefix(directory) ? directory.utf8.count : nil
        }
    }

    private struct Realm: Sendable {
        let name: ExactText?
        var strongest = 0
        /// Of the schemes that take a user and a password.
        var strongestOfPasswords = 0
        var places: [Place] = []

        mutating func note(_ challenge: AnswerableChallenge, at path: ExactText) {
            let strength = challenge.provenStrength
            strongest = max(strongest, strength)
            if challenge.takesPassword { strongestOfPasswords = max(strongestOfPasswords, strength) }
            // A server that has accepted a stronger scheme at this very path is not believed when it wants the weaker one back.
            places.removeAll { $0.path == path && $0.strength <= strength }
            places.append(Place(path: path, strength: strength))
            guard places.count > AcceptedStrength.placesOfRealm else { return }
            // The weakest goes first: what is forgotten leads to a question and not to a password in the clear.
            let weakest = places.map(\.strength).min()
            places.remove(at: places.firstIndex { $0.strength == weakest } ?? 0)
        }
    }

    private struct Site: Sendable {
        var realms: [Realm] = []
        /// The strongest that was accepted in a realm which is forgotten.
        var floor = 0

        mutating func note(_ challenge: AnswerableChallenge, at path: ExactText) {
            let index = realms.firstIndex { $0.name == challenge.realm }
            var realm = index.map { realms.remove(at: $0) } ?? Realm(name: challenge.realm, strongest: floor)
            realm.note(challenge, at: path)
            realms.append(realm)
            if realms.count > AcceptedStrength.realmsOfServer { floor = max(floor, realms.removeFirst().strongest) }
        }
    }

    private static let placesOfRealm = 16
    private static let realmsOfServer = 16
    private static let capacity = 1024

    private var sites: [Challenger: Site] = [:]
    private var order: [Challenger] = []

    /// The challenger has accepted an answer to `challenge` for `path`, which is `/` for a proxy.
    mutating func note(_ challenge: AnswerableChallenge, at challenger: Challenger, path: ExactText) {
        if sites[challenger] == nil { order.append(challenger) }
        sites[challenger, default: Site()].note(challenge, at: path)
        if order.count > Self.capacity { sites[order.removeFirst()] = nil }
    }

    /// Whether the challenger has done better before: then what is stored is not for this challenge, but somebody may answer it.
    ///
    /// Where this scheme was accepted at the very path, or in a directory below all those where a stronger one was, it is the
    /// scheme of that place: servers use one realm's name for places with different schemes.
    func isDowngrade(
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
        if own.places.contains(where: { $0.path == path && $0.strength <= strength }) { return false }
        let weak = own.places.filter { $0.strength <= strength }.compactMap { $0.depth(above: path) }.max()
        let strong = (others + [own]).flatMap(\.places).filter { $0.strength > strength }
            .compactMap { $0.depth(above: path) }.max()
        return weak.map { $0 <= strong ?? -1 } ?? true
    }
}

extension AnswerableChallenge {
    /// A token is strong once there is one.
    fileprivate var provenStrength: Int {
        if case .bearer = self { Self.strengthOfToken } else { strength }
    }

    /// Whether a user and a password answer it.
    var takesPassword: Bool {
        switch self {
        case .basic, .digest, .ntlm, .socks: true
        case .bearer, .negotiate, .other: false
        }
    }
}
