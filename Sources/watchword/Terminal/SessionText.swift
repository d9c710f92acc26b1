import JSONText
import WatchwordProtocol

/// Describes how long an answer that is stored for the session remains there, from `sessionLimits` of a challenge.
enum SessionText {
    /// Returns the end of a sentence that begins with "for this session"; `nil` if the challenge does not allow the session, or
    /// an older broker does not state the limits.
    static func duration(_ challenge: JSON) -> String? {
        guard let limits = challenge["sessionLimits"], let lifetime = limits["lifetimeMs"]?.integer else { return nil }
        let idle = limits["idleMs"]?.integer
        let unused = idle.flatMap { $0 < lifetime ? "it is unused for \(time($0)) or " : nil } ?? ""
        return "until \(unused)the computer sleeps, at most \(time(lifetime))"
    }

    /// Returns a time in the largest unit in which it is a whole number, rounded up to minutes from two minutes on, so that
    /// the real time is not longer.
    static func time(_ milliseconds: Int) -> String {
        var seconds = (max(0, milliseconds) + 999) / 1000
        if seconds > 120 { seconds = (seconds + 59) / 60 * 60 }
        let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
        let (unit, name) = units.first { seconds >= $0.0 && seconds.isMultiple(of: $0.0) } ?? (1, "second")
        return counted(seconds / unit, name)
    }
}
