import ArgumentParser
import Glibc
import WatchwordProtocol

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
