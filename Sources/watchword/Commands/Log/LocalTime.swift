import ArgumentParser
import Glibc
import WatchwordProtocol

/// Times in the time zone of the user (`$TZ`, /etc/localtime).
enum LocalTime {
    /// Returns a time with its UTC offset (RFC 3339), which `--since` accepts.
    /// - Parameter milliseconds: Milliseconds since 1970.
    static func text(_ milliseconds: Int, hasMilliseconds: Bool = true) -> String {
        let (seconds, fraction) = (
            Int((Double(milliseconds) / 1000).rounded(.down)), (milliseconds % 1000 + 1000) % 1000
        )
        var (time, parts) = (time_t(seconds), tm())
        localtime_r(&time, &parts)
        // The local time is formatted as UTC, and its offset is appended.
        let offset = parts.tm_gmtoff / 60
        let shown = UTCTime.text((seconds + parts.tm_gmtoff) * 1000 + fraction).dropLast(hasMilliseconds ? 1 : 5)
        let (hours, minutes) = (abs(offset) / 60, abs(offset) % 60)
        return "\(shown)\(offset < 0 ? "-" : "+")\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
    }

    /// Parses a date, a local time, or a time with `Z` or a UTC offset, to milliseconds since 1970. Returns `nil` for any other
    /// text.
    static func milliseconds(_ text: String) -> Int? {
        if let exact = UTCTime.rfc3339(text) { return exact }
        guard let moment = UTCTime.milliseconds(text) else { return nil }
        if text.last == "Z" { return moment }
        // A local time can occur twice, when clocks are set back; the first one is meant, so that nothing is omitted.
        let candidates = [Int32(1), 0, -1].map { isSummer -> (time: Int, isExact: Bool) in
            var (seconds, parts) = (time_t(moment / 1000), tm())
            gmtime_r(&seconds, &parts)
            let hour = parts.tm_hour
            parts.tm_isdst = isSummer
            let time = mktime(&parts)
            return (Int(time), parts.tm_hour == hour)
        }
        let exact = candidates.filter { $0.isExact }.map { $0.time }.min()
        return max(0, (exact ?? candidates[2].time) * 1000 + moment % 1000)
    }
}

/// The value of `--since`: a time, or an age.
struct LogStart: ExpressibleByArgument, Sendable {
    /// Milliseconds since 1970.
    let milliseconds: Int

    init?(argument: String) {
        let units: [Character: Int] = ["s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
        if let unit = argument.last.flatMap({ units[$0] }), let number = Int(argument.dropLast()),
            (0...1_000_000_000).contains(number)
        {
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            milliseconds = Int(now.tv_sec) * 1000 + Int(now.tv_nsec) / 1_000_000 - number * unit
        } else if let moment = LocalTime.milliseconds(argument) {
            milliseconds = moment
        } else {
            return nil
        }
    }
}
