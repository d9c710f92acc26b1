import WatchwordProtocol

/// Parses sizes as curl's options do, and formats them for display.
enum ByteCount {
    /// Parses a number of bytes with an optional suffix `k`, `M`, `G`, `T` or `P`, a power of 1024. Returns `nil` for
    /// anything else.
    static func parse(_ text: String) -> Int? {
        var digits = text[...]
        var shift = 0
        if let last = text.last, !last.isNumber {
            guard let power = "kmgtp".firstIndex(of: Character(last.lowercased())) else { return nil }
            shift = 10 * ("kmgtp".distance(from: "kmgtp".startIndex, to: power) + 1)
            digits = digits.dropLast()
            if digits.last == "." { return nil }
        }
        guard let number = Double(digits), digits.allSatisfy({ $0.isNumber || $0 == "." }) else { return nil }
        let bytes = number * Double(1 << shift)
        return bytes < Double(Int.max) && (shift > 0 || !digits.contains(".")) ? Int(bytes) : nil
    }

    /// Formats a size as a number of at most four characters and a unit.
    static func text(_ bytes: Int) -> String {
        var number = Double(bytes)
        for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
            if number < 999.5 || unit == "TiB" {
                let isSmall = unit != "B" && number < 99.95
                let tenths = Int((number * 10).rounded())
                return isSmall ? "\(tenths / 10).\(tenths % 10) \(unit)" : "\(Int(number.rounded())) \(unit)"
            }
            number /= 1024
        }
        return ""
    }
}
