internal import WatchwordProtocol

/// A login that `IndexedLogins` finds without a look at the other ones.
protocol IndexedLogin: Sendable {
    /// The paths at or below which it matters.
    var paths: [ExactText] { get }
    /// Its realm, or that of the pattern of its spaces.
    var realm: ExactText? { get }
    /// Whether both are found by the same paths and realms. May be `false` without a reason.
    func isFound(like other: Self) -> Bool
}

/// The logins for one server or proxy, oldest first, with an index of their paths and realms: a fetch does not take longer
/// the more logins a server has.
struct IndexedLogins<Login: IndexedLogin>: ChallengerList, Sendable {
    /// One of the keys that a login is found by.
    private struct Mark: Sendable {
        let key: Int
        /// The number of the login.
        let number: Int
    }

    /// So few logins are looked at one by one.
    private static var few: Int { 8 }

    private var logins: [Login] = []
    /// The numbers of the logins, which increase. Unlike its position, the number of a login never changes.
    private var numbers: [Int] = []
    /// Ordered by key and number.
    private var marks: [Mark] = []

    var startIndex: Int { 0 }
    var endIndex: Int { logins.count }

    subscript(position: Int) -> Login {
        get { logins[position] }
        _modify {
            let before = logins[position]
            yield &logins[position]
            if !logins[position].isFound(like: before) {
                unmark([numbers[position]])
                mark(position)
            }
        }
    }

    /// The logins at these positions, which increase.
    subscript(positions: [Int]) -> [Login] {
        positions.count == logins.count ? logins : positions.map { logins[$0] }
    }

    mutating func append(_ login: Login) {
        logins.append(login)
        numbers.append((numbers.last ?? 0) + 1)
        mark(endIndex - 1)
    }

    mutating func remove(at position: Int) -> Login {
        unmark([numbers.remove(at: position)])
        return logins.remove(at: position)
    }

    mutating func removeAll(where isDropped: (Login) throws -> Bool) rethrows {
        let dropped = try indices.filter { try isDropped(logins[$0]) }
        guard !dropped.isEmpty else { return }
        unmark(Set(dropped.map { numbers[$0] }))
        let ranges = RangeSet(dropped, within: logins)
        logins.removeSubranges(ranges)
        numbers.removeSubranges(ranges)
    }

    // MARK: Finding

    /// Returns the positions of all logins that matter at `path`, in whatever way a server reads it, and perhaps of others.
    func positions(near path: ExactText) -> [Int] {
        logins.count > Self.few ? LoginKey.near(path).map(positions) ?? Array(indices) : Array(indices)
    }

    /// Returns the positions of all logins in these realms, and perhaps of others.
    func positions(in realms: [ExactText?]) -> [Int] {
        logins.count > Self.few ? positions(with: realms.map(LoginKey.realm)) : Array(indices)
    }

    private func positions(with keys: [Int]) -> [Int] {
        var found: [Int] = []
        for key in keys {
            for mark in marks[marks.partition { $0.key < key }...] {
                if mark.key != key { break }
                // Each position is searched for.
                if found.count >= logins.count / Self.few { return Array(indices) }
                found.append(numbers.partition { $0 < mark.number })
            }
        }
        return found.count > 1 ? Set(found).sorted() : found
    }

    // MARK: Index

    private mutating func mark(_ position: Int) {
        let (login, number) = (logins[position], numbers[position])
        for key in Set(login.paths.map(LoginKey.path)).union([LoginKey.realm(login.realm)]) {
            let place = marks.partition { ($0.key, $0.number) < (key, number) }
            marks.insert(Mark(key: key, number: number), at: place)
        }
    }

    private mutating func unmark(_ numbers: Set<Int>) { marks.removeAll { numbers.contains($0.number) } }
}

/// What logins are found by: hash values, which differ for nearly all paths and realms.
enum LoginKey {
    /// The key of the paths that servers may read in several ways.
    private static let ambiguous = 0

    static func realm(_ realm: ExactText?) -> Int {
        var hasher = Hasher()
        hasher.combine(realm?.readable)
        return hasher.finalize()
    }

    static func path(_ path: ExactText) -> Int {
        HiddenSegments.isPlain(path) ? keys(of: path.utf8).last ?? ambiguous : ambiguous
    }

    /// Returns the keys of the paths that may cover `path` (`PathRange.path(_:mayCover:)`); `nil` if any path may.
    static func near(_ path: ExactText) -> [Int]? {
        if HiddenSegments.isPlain(path) { return keys(of: path.utf8) + [ambiguous] }
        return HiddenSegments.segmentReadings(of: path).map { readings in
            readings.flatMap { keys(of: $0.joined(separator: CollectionOfOne(slash))) } + [ambiguous]
        }
    }

    private static var slash: UInt8 { UInt8(ascii: "/") }

    /// Returns the keys of the whole server, and of each directory down to the path.
    private static func keys(of path: some Sequence<UInt8>) -> [Int] {
        var (hasher, isInSegment) = (Hasher(), false)
        func key() -> Int {
            let directory = hasher
            return directory.finalize()
        }
        var keys = [key()]
        for byte in path where byte != slash || isInSegment {
            hasher.combine(byte)
            isInSegment = byte != slash
            if !isInSegment { keys.append(key()) }
        }
        guard isInSegment else { return keys }
        hasher.combine(slash)
        return keys + [key()]
    }
}

extension Array {
    /// Returns the position of the first element for which `isBefore` is `false`; it is `true` for those before it only.
    fileprivate func partition(where isBefore: (Element) -> Bool) -> Int {
        var range = startIndex..<endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = isBefore(self[middle]) ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}
