/// A part of a server: a path and everything below it, with exceptions.
public struct PathRange: Sendable, Hashable {
    /// The path at and below which the range begins; `nil` for the whole server. Begins with "/", but is never "/" itself.
    public var path: ExactText?
    /// The paths, at or below `path`, that are not in the range: tokens for them come from elsewhere.
    public var excluded: [ExactText]

    public init(_ path: ExactText? = nil, excluding excluded: [ExactText] = []) {
        (self.path, self.excluded) = (path, excluded)
    }

    /// Whether the path `requested` is in the range. `/a` does not cover `/ab`, nor a path that may lead out of it.
    public func covers(_ requested: ExactText) -> Bool {  // guard: path-readings
        guard !isWhole else { return true }
        guard Self.path(path ?? "/", covers: requested) && !HiddenSegments.leadUp(in: requested) else { return false }
        return !excluded.contains { Self.path($0, mayCover: requested) }
    }

    /// Whether each path is in the range.
    public var isWhole: Bool { path == nil && excluded.isEmpty }

    /// Whether `requested` equals `path` or is below it, in whatever equivalent form it is written (RFC 3986 section 6.2.2).
    public static func path(_ path: ExactText, covers requested: ExactText) -> Bool {  // guard: keyring-path
        let (path, requested) = (normal(path), normal(requested))
        return path.string.withBytes { path in
            requested.string.withBytes { requested in
                guard requested.hasPrefix(path) else { return false }
                let isWhole = path.count == requested.count || path.last == UInt8(ascii: "/")
                return isWhole || requested[path.count] == UInt8(ascii: "/")
            }
        }
    }

    /// Whether a server might read `requested` as `path` or a path below it: it may decode both paths more often, join their
    /// empty segments, ignore parameters of a segment, or resolve hidden dot segments.
    public static func path(_ path: ExactText, mayCover requested: ExactText) -> Bool {
        if Self.path(path, covers: requested) { return true }
        if HiddenSegments.isPlain(path), HiddenSegments.isPlain(requested) { return false }
        guard let own = HiddenSegments.segmentReadings(of: path),
            let theirs = HiddenSegments.segmentReadings(of: requested)
        else { return true }
        return theirs.contains { one in own.contains { one.starts(with: $0) } }
    }

    /// Whether both are one path, in whatever equivalent form they are written.
    public static func areSame(_ one: ExactText, _ other: ExactText) -> Bool {
        one == other || normal(one) == normal(other)
    }

    /// The length of the path in bytes, which does not depend on the equivalent form in which it is written.
    public static func length(of path: ExactText) -> Int { normal(path).utf8.count }

    private static func normal(_ path: ExactText) -> ExactText {
        let isNormal = path.string.withBytes { bytes in !bytes.contains { $0 == UInt8(ascii: "%") || $0 >= 0x80 } }
        return isNormal ? path : ExactText(String(decoding: HiddenSegments.normal(path.utf8), as: UTF8.self))
    }
}
