public import WatchwordProtocol

/// What the broker remembers for the session: credentials that servers have accepted, by protection space, with the paths
/// where they were, and the nonces that go with them.
///
/// Times are durations since any one start; they never go back. Bounded: the space unused for longest makes room.
public struct SessionCache: Sendable {
    struct Entry: Sendable {
        let space: ProtectionSpace
        var credential: PasswordCredential
        /// Directories at or below which the credential was accepted. For Basic they are its whole scope (RFC 7617 section
        /// 2.2); Digest is good for the whole server (RFC 7616 section 3.3), and they only say which space fits better.
        var directories: [String]
        /// The challenge that the credential was last accepted for.
        var digest: DigestChallenge?
        let since: Duration
        var lastUse: Duration
    }

    /// By origin, because each fetch looks there before it sends anything.
    private var entries: [Origin: [Entry]] = [:]
    /// Not credentials: counted for every fetch, whatever it lets the broker keep.
    var nonces = DigestNonces()
    public private(set) var count = 0
    private let limits: SessionLimits

    public init(limits: SessionLimits = SessionLimits()) { self.limits = limits }

    /// The credential for exactly this space.
    func credential(for space: ProtectionSpace, at origin: Origin, now: Duration) -> PasswordCredential? {
        entries[origin]?.first { $0.space == space && limits.allow($0, now: now) }?.credential
    }

    /// The space whose credential may be sent to `url` before any challenge; the longest matching path wins.
    func preemptiveEntry(for url: FetchURL, now: Duration) -> Entry? {
        guard let candidates = entries[url.origin] else { return nil }
        var best: (entry: Entry, length: Int)?
        for entry in candidates where limits.allow(entry, now: now) {
            guard let length = entry.matchLength(of: url.path), length > best?.length ?? -1 else { continue }
            best = (entry, length)
        }
        return best?.entry
    }

    /// Notes an accepted credential. `digest` is the challenge that it was accepted for.
    mutating func remember(
        _ credential: PasswordCredential, for space: ProtectionSpace, at url: FetchURL, digest: DigestChallenge?,
        now: Duration
    ) {
        let directory = URLComponentText.directory(of: url.path)
        var list = entries[url.origin] ?? []
        if let index = list.firstIndex(where: { $0.space == space }) {
            if !list[index].credential.isSame(as: credential) || !limits.allow(list[index], now: now) {
                list[index] = Entry(space, credential, directory, digest, now: now)
            } else {
                list[index].note(directory, digest: digest, now: now, maxPaths: limits.paths)
            }
        } else {
            list.append(Entry(space, credential, directory, digest, now: now))
            count += 1
        }
        entries[url.origin] = list
        if count > limits.entries { dropOldest() }
    }

    /// Forgets the credential of `space`, if it is still the one that was refused: a newer one survives.
    mutating func forget(_ refused: PasswordCredential, for space: ProtectionSpace, at origin: Origin) {
        removeEntries(at: origin) { $0.space == space && $0.credential.isSame(as: refused) }
    }

    /// Forgets everything, or all of one origin. Returns how many spaces were forgotten.
    public mutating func clear(origin: Origin? = nil) -> Int {
        let before = count
        if let origin {
            removeEntries(at: origin) { _ in true }
        } else {
            entries = [:]
            count = 0
        }
        return before - count
    }

    /// Drops what is too old or was not used for too long.
    public mutating func expire(now: Duration) {
        let limits = self.limits
        for origin in Array(entries.keys) { removeEntries(at: origin) { !limits.allow($0, now: now) } }
    }

    private mutating func removeEntries(at origin: Origin, where isDropped: (Entry) -> Bool) {
        guard let list = entries[origin] else { return }
        let kept = list.filter { !isDropped($0) }
        count -= list.count - kept.count
        entries[origin] = kept.isEmpty ? nil : kept
    }

    private mutating func dropOldest() {
        let oldest = entries.values.joined().min { $0.lastUse < $1.lastUse }
        guard let oldest else { return }
        for origin in Array(entries.keys) { removeEntries(at: origin) { $0.space == oldest.space } }
    }
}

/// The bounds of the session cache.
public struct SessionLimits: Sendable {
    public var entries: Int
    public var paths: Int
    public var idle: Duration
    public var lifetime: Duration

    public init(
        entries: Int = Limits.sessionEntries, paths: Int = Limits.sessionPaths, idle: Duration = Limits.sessionIdle,
        lifetime: Duration = Limits.sessionLifetime
    ) {
        self.entries = entries
        self.paths = paths
        self.idle = idle
        self.lifetime = lifetime
    }

    fileprivate func allow(_ entry: SessionCache.Entry, now: Duration) -> Bool {
        now - entry.lastUse < idle && now - entry.since < lifetime
    }
}

extension SessionCache.Entry {
    fileprivate init(
        _ space: ProtectionSpace, _ credential: PasswordCredential, _ directory: String, _ digest: DigestChallenge?,
        now: Duration
    ) {
        self.init(
            space: space, credential: credential, directories: [directory], digest: digest, since: now, lastUse: now)
    }

    /// How much of `path` the entry is good for; `nil` when it is outside.
    fileprivate func matchLength(of path: String) -> Int? {
        let matches = directories.filter { path.hasPrefix($0) }.map(\.utf8.count)
        return matches.max() ?? (space.authenticationMethod == .httpDigest ? 0 : nil)
    }

    fileprivate mutating func note(_ directory: String, digest newer: DigestChallenge?, now: Duration, maxPaths: Int) {
        lastUse = now
        digest = newer
        guard !directories.contains(where: { directory.hasPrefix($0) }) else { return }
        directories.removeAll { $0.hasPrefix(directory) }
        if directories.count >= maxPaths { directories.removeFirst() }
        directories.append(directory)
    }
}
