public import WatchwordProtocol

/// The configured rules for tokens, by URL.
public struct OAuthRules: Sendable {
    /// The rules of each origin with their paths, those for the longest path first.
    private let rules: [Origin: [(path: ExactText, rule: OAuthRule)]]

    /// A rule whose resource is not a URL of servers matches nothing.
    public init(_ rules: [OAuthRule]) {
        var byOrigin: [Origin: [(path: ExactText, rule: OAuthRule)]] = [:]
        for rule in rules {
            guard let url = try? FetchURL(rule.resource) else { continue }
            byOrigin[url.origin, default: []].append((url.path, rule))
        }
        self.rules = byOrigin.mapValues { $0.sorted { $0.path.utf8.count > $1.path.utf8.count } }
    }

    /// Returns the rule for the longest path that contains the URL; `nil` if there is none, or if its tokens cannot be obtained.
    ///
    /// A path contains the paths that begin with all of its segments. Segments are compared as they are written, because servers
    /// can distinguish percent-encoded from other characters.
    public func rule(for url: FetchURL) -> OAuthRule? {
        let found = rules[url.origin]?.first { LoginCredential.path($0.path, covers: url.path) }
        guard let found, found.rule.isUsable else { return nil }  // guard: oauth-rule-usable
        // The whole origin cannot be left.
        // guard: oauth-hidden-segments
        guard found.path == "/" || !HiddenSegments.leadUp(in: url.path) else { return nil }
        return found.rule
    }
}

/// Dot segments that `FetchURL` does not resolve, but some servers: with an encoded slash or backslash, as in `..%2Fadmin`,
/// encoded twice, as in `%252e%252e/admin`, or with a parameter, as in `..;/admin`. Their request for a path below `/v1` can reach
/// a resource elsewhere.
private enum HiddenSegments {
    /// The number of times that a server may decode a path.
    private static let decodings = 3

    /// Whether a server might find a segment `..` in the path. Also returns `true` for a path that is encoded more often.
    static func leadUp(in path: ExactText) -> Bool {
        var bytes = Array(path.utf8)
        for _ in 0...decodings {
            if hasDoubleDot(bytes) { return true }
            let decoded = decoded(bytes)
            if decoded == bytes { return false }
            bytes = decoded
        }
        return true
    }

    private static func hasDoubleDot(_ bytes: [UInt8]) -> Bool {
        bytes.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.contains { segment in
            segment.prefix { $0 != UInt8(ascii: ";") }.elementsEqual("..".utf8)
        }
    }

    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var (result, index) = ([UInt8](), 0)
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let value = Hexadecimal.bytes(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self))
            {
                result += value
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }
}
