internal import WatchwordProtocol

/// What people had the broker forget, and in which order: nothing that began before is remembered, or served to others, after.
///
/// Bounded: of what was forgotten long ago, everything counts as meant.
struct ForgetLog: Sendable {
    /// A point in that order. Whatever may be remembered carries the one at which it began.
    struct Mark: Sendable, Hashable, Comparable {
        fileprivate let number: Int

        static func < (left: Mark, right: Mark) -> Bool { left.number < right.number }
    }

    /// What was forgotten.
    enum Scope: Sendable {
        case everything
        case origin(Origin)
        /// The credentials of these spaces; of one user, or of all where that is `nil`.
        case credentials(SpacePattern, user: ExactText?)
        /// What was found in a netrc file, and nothing that is kept.
        case netrcFile
    }

    private static let capacity = 64

    private var scopes: [Scope] = []
    private var dropped = 0
    /// Since when the configuration names the netrc file that it names now.
    private(set) var netrcMark = Mark(number: 0)

    /// Where whatever begins now stands.
    var mark: Mark { Mark(number: dropped + scopes.count) }

    mutating func note(_ scope: Scope) {
        scopes.append(scope)
        if scopes.count > Self.capacity {
            scopes.removeFirst()
            dropped += 1
        }
    }

    mutating func noteNetrcChange() {
        note(.netrcFile)
        netrcMark = mark
    }

    /// Whether nothing was forgotten since `mark` that means a credential of `user` in these spaces.
    func isCurrent(_ mark: Mark, for pattern: SpacePattern, user: ExactText?) -> Bool {
        guard mark.number >= dropped else { return false }
        return !scopes[(mark.number - dropped)...].contains { $0.means(pattern, user) }
    }

    func isCurrent(_ mark: Mark, for space: ProtectionSpace, user: ExactText? = nil) -> Bool {
        // Mostly nothing was forgotten, and this is asked for every response.
        mark == self.mark || isCurrent(mark, for: SpacePattern(space), user: user)
    }
}

extension ForgetLog.Scope {
    fileprivate func means(_ pattern: SpacePattern, _ user: ExactText?) -> Bool {
        switch self {
        case .everything: true
        case .netrcFile: false
        case .origin(let origin):
            pattern.proxyType == nil && pattern.scheme == origin.scheme.rawValue && pattern.host == origin.host
                && pattern.port == origin.port
        case .credentials(let meant, let owner):
            meant.overlaps(pattern) && (owner == nil || user == nil || owner == user)
        }
    }
}
