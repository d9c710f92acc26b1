import Glibc
import Logging

/// The options of a start. `DaemonCommand` describes them.
struct DaemonOptions {
    var socket: String?
    var config: String?
    var caFile: String?
    var logLevel = Logger.Level.notice.rawValue
    var readyFd: Int32?
    var challengeDeadlineMs: Int?

    /// The reason why the values are invalid, and what to do; `nil` if they are valid.
    var problem: String? {
        if let readyFd, readyFd <= 2 || fcntl(readyFd, F_GETFD) < 0 {
            return "--ready-fd must be an open descriptor above 2"
        }
        guard Logger.Level(rawValue: logLevel) != nil else {
            return "--log-level must be one of: \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))"
        }
        if let challengeDeadlineMs, !(1...86_400_000).contains(challengeDeadlineMs) {
            return "--challenge-deadline-ms must be between 1 and 86400000"
        }
        if let caFile, access(caFile, R_OK) != 0 {
            return "cannot read \(caFile) (--ca-file): \(String(cString: strerror(errno)))"
        }
        return nil
    }
}

extension DaemonOptions {
    /// Parses arguments that are valid, and all of the form `--name value`. Returns `nil` for any others, which are for
    /// ArgumentParser: it takes one and a half of the nine milliseconds of a start.
    init?(plain arguments: some Sequence<String>) {
        self.init()
        var rest = arguments.makeIterator()
        while let name = rest.next() {
            guard let value = rest.next(), !value.hasPrefix("-") else { return nil }
            switch name {
            case "--socket": socket = value
            case "--config": config = value
            case "--ca-file": caFile = value
            case "--log-level": logLevel = value
            case "--ready-fd":
                guard let number = Int32(value) else { return nil }
                readyFd = number
            case "--challenge-deadline-ms":
                guard let number = Int(value) else { return nil }
                challengeDeadlineMs = number
            default: return nil
            }
        }
        guard problem == nil else { return nil }
    }
}
