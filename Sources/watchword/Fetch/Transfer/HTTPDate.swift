import WatchwordProtocol

extension HTTPDate {
    /// 365 days, in seconds.
    private static let longestDelay = 86_400 * 365

    /// Returns the delay that `Retry-After` requests, in seconds or as a date (RFC 9110 section 10.2.3), but at most 365 days.
    static func retryAfter(_ text: String?, now: Int) -> Duration? {
        guard let text else { return nil }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return text.isEmpty ? nil : .seconds(min(Int(text) ?? longestDelay, longestDelay))
        }
        return seconds(text).map { .seconds(min(max(0, $0 - now), longestDelay)) }
    }
}
