internal import Glibc

/// Times as ISO 8601 in UTC, with milliseconds: `2026-11-21T17:20:03.120Z`.
public enum UTCTime {
    /// - Parameter milliseconds: Milliseconds since 1970, without leap seconds.
    public static func text(_ milliseconds: Int) -> String {
        let fraction = (milliseconds % 1000 + 1000) % 1000
        var (seconds, time) = ((milliseconds - fraction) / 1000, tm())
        gmtime_r(&seconds, &time)
        let date = [padded(time.tm_year + 1900, 4), padded(time.tm_mon + 1, 2), padded(time.tm_mday, 2)]
        let clock = [time.tm_hour, time.tm_min, time.tm_sec].map { padded($0, 2) }
        return "\(date.joined(separator: "-"))T\(clock.joined(separator: ":")).\(padded(Int32(fraction), 3))Z"
    }

    /// Parses a date, or a date and a time with minutes, seconds or milliseconds, to milliseconds since 1970. Returns `nil` for
    /// any other text.
    public static func milliseconds(_ text: String) -> Int? {
        var text = text[...]
        if text.last == "Z" { text.removeLast() }
        let halves = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = halves.first, let date = numbers(first, "-", widths: [4, 2, 2]), let midnight = midnight(date)
        else { return nil }
        guard halves.count == 2 else { return midnight }
        let parts = halves[1].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let clock = numbers(parts[0], ":", widths: [2, 2, 2]) ?? numbers(parts[0], ":", widths: [2, 2])
        guard let clock, clock[0] < 24, clock[1] < 60, clock.count < 3 || clock[2] < 60 else { return nil }
        let time = clock[0] * 3_600_000 + clock[1] * 60_000 + (clock.count == 3 ? clock[2] * 1000 : 0)
        guard parts.count == 2 else { return midnight + time }
        guard clock.count == 3, let fraction = numbers(parts[1], ".", widths: [3]) else { return nil }
        return midnight + time + fraction[0]
    }

    /// Parses a time with its UTC offset (RFC 3339 section 5.6) to milliseconds since 1970. Smaller fractions of a second are
    /// dropped. Returns `nil` for any other text.
    public static func rfc3339(_ text: String) -> Int? {
        let bytes = text.utf8
        guard (20...40).contains(bytes.count), bytes.allSatisfy({ $0 < 0x80 }) else { return nil }
        let upper = text.uppercased()
        let (time, offset): (Substring, Int)
        if upper.hasSuffix("Z") {
            (time, offset) = (upper.dropLast(), 0)
        } else {
            let sign = upper.dropLast(5).last
            guard let zone = numbers(upper.suffix(5), ":", widths: [2, 2]), zone[0] < 24, zone[1] < 60,
                sign == "+" || sign == "-"
            else { return nil }
            (time, offset) = (upper.dropLast(6), (zone[0] * 60 + zone[1]) * 60_000 * (sign == "-" ? -1 : 1))
        }
        let halves = time.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves[0].utf8.count == 19, let whole = milliseconds(String(halves[0])) else { return nil }
        guard halves.count == 2 else { return whole - offset }
        guard !halves[1].isEmpty, halves[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let fraction = Int((halves[1] + "00").prefix(3))
        else { return nil }
        return whole + fraction - offset
    }

    private static func numbers(_ text: Substring, _ separator: Character, widths: [Int]) -> [Int]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == widths, parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        return parts.compactMap { Int($0) }
    }

    private static func padded(_ number: Int32, _ width: Int) -> String {
        let digits = "\(number)"
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// The start of a day in milliseconds since 1970; `nil` if the calendar has no such day.
    private static func midnight(_ date: [Int]) -> Int? {
        var time = tm()
        let (year, month, day) = (Int32(date[0] - 1900), Int32(date[1] - 1), Int32(date[2]))
        (time.tm_year, time.tm_mon, time.tm_mday) = (year, month, day)
        let seconds = timegm(&time)  // Changes a date that does not exist, such as February 30.
        let exists = (time.tm_year, time.tm_mon, time.tm_mday) == (year, month, day)
        return exists && (1970...9999).contains(date[0]) ? seconds * 1000 : nil
    }
}

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
