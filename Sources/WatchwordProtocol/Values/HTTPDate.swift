internal import Glibc

/// Dates of header fields in IMF-fixdate, the only format that senders may use (RFC 9110 section 5.6.7).
public enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns seconds since 1970; `nil` for any other format than `Sun, 06 Nov 1994 08:49:37 GMT`.
    public static func seconds(_ text: String) -> Int? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[0].last == ",", words[5] == "GMT", let day = Int32(words[1]),
            let month = months.firstIndex(of: String(words[2])), let year = Int32(words[3]), year >= 1900
        else { return nil }
        let clock = words[4].split(separator: ":").compactMap { Int32($0) }
        guard clock.count == 3 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, Int32(month), day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock[0], clock[1], clock[2])
        return timegm(&parts)
    }

    /// - Parameter sinceEpoch: the time since 1970.
    public static func text(_ sinceEpoch: Duration) -> String {
        func digits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        var (seconds, parts) = (time_t(sinceEpoch.components.seconds), tm())
        gmtime_r(&seconds, &parts)
        let date = "\(digits(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(digits).joined(separator: ":")
        return "\(days[Int(parts.tm_wday)]), \(date) \(clock) GMT"
    }
}
