internal import WatchwordProtocol

/// The forget operations, in order. After such an operation, a credential that it covers is neither remembered nor
/// shared with other fetches if its lookup, question or attempt began before.
///
/// Bounded: everything that began before the oldest entry counts as forgotten.
struct ForgetLog: Sendable {
    /// A position in the log, recorded when a lookup, question or attempt begins.
    struct Mark: Sendable, Hashable, Comparable {
        fileprivate let number: Int

        static func < (left: Mark, right: Mark) -> Bool { left.number < right.number }
    }

    /// The credentials that one forget operation covers.
    enum Scope: Sendable {
        case everything
        case address(SiteAddress)
        /// The credentials for these spaces, of one user, or of all users if `user` is `nil`.
        case credentials(SpacePattern, user: ExactText?)
        /// The credentials read from the netrc file; no credential in the session cache or keyring.
        case netrcFile
    }

    private static let capacity = 64

    private var scopes: [Scope] = []
    private var dropped = 0
    /// The mark of the last change of the configured netrc file.
    private(set) var netrcMark = Mark(number: 0)

    /// The mark for a lookup, question or attempt that begins now.
    var mark: Mark { Mark(number: dropped + scopes.count) }

    mutating func record(_ scope: Scope) {
        scopes.append(scope)
        if scopes.count > Self.capacity {
            scopes.removeFirst()
            dropped += 1
        }
    }

    mutating func recordNetrcChange() {
        record(.netrcFile)
        netrcMark = mark
    }

    /// Whether no forget operation since `mark` covers a credential of `user` for these spaces.
    func isCurrent(_ mark: Mark, for pattern: SpacePattern, user: ExactText?) -> Bool {
        guard mark.number >= dropped else { return false }
        return !scopes[(mark.number - dropped)...].contains { $0.means(pattern, user) }
    }

    func isCurrent(_ mark: Mark, for space: ProtectionSpace, user: ExactText? = nil) -> Bool {
        // A fast path: this is called for every response, and usually nothing was forgotten.
        mark == self.mark || isCurrent(mark, for: SpacePattern(space), user: user)
    }
}

extension ForgetLog.Scope {
    fileprivate func means(_ pattern: SpacePattern, _ user: ExactText?) -> Bool {
        switch self {
        case .everything: true
        case .netrcFile: false
        case .address(let address): address.contains(pattern)
        case .credentials(let meant, let owner):
            meant.overlaps(pattern) && (owner == nil || user == nil || owner == user)
        }
    }
}
