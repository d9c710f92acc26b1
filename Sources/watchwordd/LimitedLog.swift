import Logging
import Synchronization
import WatchwordCore

/// Writes log lines to standard error: of equal lines only as many as `LogLimiter` allows, and none that is very long. Levels
/// below `notice`, which an operator chooses to follow each event, are not limited.
struct LimitedLog: LogHandler {
    private final class Limit: Sendable {
        private let limiter = Mutex(LogLimiter())
        private let start = ContinuousClock.now

        func leftOut(before message: String) -> Int? {
            limiter.withLock { $0.leftOut(before: message, now: ContinuousClock.now - start) }
        }
    }

    private var handler: StreamLogHandler
    private let limit = Limit()

    init(label: String, level: Logger.Level) {
        handler = StreamLogHandler.standardError(label: label)
        handler.logLevel = level
    }

    var logLevel: Logger.Level {
        get { handler.logLevel }
        set { handler.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        var event = event
        if event.level >= .notice {
            guard let leftOut = limit.leftOut(before: event.message.description) else { return }
            if leftOut > 0 {
                event.metadata = (event.metadata ?? [:]).merging(["equal lines left out": "\(leftOut)"]) { $1 }
            }
        }
        event.message = "\(LogLimiter.short(event.message.description))"
        event.metadata = event.metadata?.mapValues { "\(LogLimiter.short($0.description))" }
        handler.log(event: event)
    }
}
