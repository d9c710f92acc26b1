/// Times as ISO 8601 in UTC, with milliseconds: `2026-11-21T17:20:03.120Z`.
public enum UTCTime {
    private static let day = 86_400_000

    /// - Parameter milliseconds: Milliseconds since 1970, without leap seconds.
    public static func text(_ milliseconds: Int) -> String {
        let days = (milliseconds - modulo(milliseconds, day)) / day
        let (year, month, dayOfMonth) = date(ofDay: days)
        let rest = modulo(milliseconds, day)
        let clock = [rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60].map { padded($0, 2) }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))T"
            + "\(clock.joined(separator: ":")).\(padded(rest % 1000, 3))Z"
    }

    /// Parses a date, or a date and a time with minutes, seconds or milliseconds, to milliseconds since 1970. Returns `nil` for
    /// any other text.
    public static func milliseconds(_ text: String) -> Int? {
        var text = text[...]
        if text.last == "Z" { text.removeLast() }
        let halves = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = halves.first, let date = numbers(first, "-", widths: [4, 2, 2]), (1...12).contains(date[1]),
            let start = firstDay(year: date[0], month: date[1]),
            self.date(ofDay: start + date[2] - 1) == (date[0], date[1], date[2])
        else { return nil }
        let midnight = (start + date[2] - 1) * day
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

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = "\(number)"
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func modulo(_ number: Int, _ divisor: Int) -> Int { (number % divisor + divisor) % divisor }

    // The calendar repeats every 400 years, which have 146,097 days. Years start in March here, so leap days are at their end.

    private static func firstDay(year: Int, month: Int) -> Int? {
        guard (1970...9999).contains(year) else { return nil }
        let shifted = month > 2 ? year : year - 1
        let (cycle, ofCycle) = (shifted / 400, shifted % 400)
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5
        return cycle * 146_097 + ofCycle * 365 + ofCycle / 4 - ofCycle / 100 + ofYear - 719_468
    }

    private static func date(ofDay number: Int) -> (Int, Int, Int) {
        let shifted = number + 719_468
        let ofCycle = modulo(shifted, 146_097)
        let cycle = (shifted - ofCycle) / 146_097
        let year = (ofCycle - ofCycle / 1460 + ofCycle / 36_524 - ofCycle / 146_096) / 365
        let ofYear = ofCycle - (365 * year + year / 4 - year / 100)
        let month = (5 * ofYear + 2) / 153
        let civilMonth = month < 10 ? month + 3 : month - 9
        return (year + cycle * 400 + (civilMonth <= 2 ? 1 : 0), civilMonth, ofYear - (153 * month + 2) / 5 + 1)
    }
}
