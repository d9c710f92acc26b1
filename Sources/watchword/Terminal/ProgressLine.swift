import CPlatform

/// Formats one terminal line about one transfer.
enum ProgressLine {
    /// Returns a line that is at most `width` columns wide.
    static func text(_ progress: ShownProgress, at time: Double, width: Int, isBarOnly: Bool = false) -> String {
        let facts = isBarOnly ? percent(progress) ?? ByteCount.text(progress.bytes) : facts(progress, at: time)
        let nameWidth = isBarOnly ? 0 : max(0, min(24, width - facts.count - 2))
        var line = nameWidth < 4 ? "" : padded(shortened(progress.name, to: nameWidth), to: nameWidth) + "  "
        let room = width - terminalWidth(line) - facts.count - 1
        if let fraction = fraction(progress), room >= 8 {
            let inside = min(room, isBarOnly ? room : 40) - 2
            let filled = Int(Double(inside) * fraction)
            line += "[" + String(repeating: "#", count: filled) + String(repeating: " ", count: inside - filled) + "] "
        }
        return shortened(line + facts, to: width)
    }

    private static func facts(_ progress: ShownProgress, at time: Double) -> String {
        switch progress.state {
        case .starting: return "waiting for the server"
        case .waitingForAnswer: return "waiting for your answer"
        case .waitingForRetry(let seconds): return "retry in \(seconds) s"
        case .ended(let isComplete): return isComplete ? "\(ByteCount.text(progress.bytes)), complete" : "failed"
        case .sending, .receiving: break
        }
        var parts = [percent(progress)].compactMap(\.self)
        let size = ByteCount.text(progress.bytes)
        parts.append(progress.expected.map { "\(size) of \(ByteCount.text($0))" } ?? size)
        if progress.state == .sending { parts[parts.count - 1] += " sent" }
        if let speed = progress.speed(at: time) { parts.append("\(ByteCount.text(Int(speed)))/s") }
        if let seconds = progress.secondsLeft(at: time) { parts.append(Self.time(seconds)) }
        return parts.joined(separator: "  ")
    }

    private static func fraction(_ progress: ShownProgress) -> Double? {
        guard progress.state == .sending || progress.state == .receiving, let expected = progress.expected else {
            return nil
        }
        return expected == 0 ? 1 : min(1, Double(progress.bytes) / Double(expected))
    }

    private static func percent(_ progress: ShownProgress) -> String? {
        fraction(progress).map {
            let text = "\(Int($0 * 100))%"
            return String(repeating: " ", count: max(0, 4 - text.count)) + text
        }
    }

    /// Returns a time as `0:07`, `12:30` or `1:02:03`; `days` from 100 hours on.
    static func time(_ seconds: Int) -> String {
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60)
        if hours > 99 { return "days" }
        let tail = (rest < 10 ? ":0" : ":") + "\(rest)"
        return hours > 0 ? "\(hours):" + (minutes < 10 ? "0" : "") + "\(minutes)\(tail)" : "\(minutes)\(tail)"
    }

    static func terminalWidth(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + Int(watchword_terminal_width($1.value)) }
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - terminalWidth(text)))
    }

    /// Truncates a text that is wider than `width` columns.
    private static func shortened(_ text: String, to width: Int) -> String {
        guard terminalWidth(text) > width else { return text }
        var (result, used) = ("", 0)
        for scalar in text.unicodeScalars {
            used += Int(watchword_terminal_width(scalar.value))
            if used > width { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
