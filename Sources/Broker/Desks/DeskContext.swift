internal import Logging

/// The time, the log and the settings, which every desk may use.
final class DeskContext {
    let clock: any BrokerClock
    let log: Logger
    /// Changed by `Broker.reconfigure` only.
    var options: BrokerOptions
    /// The service ends: new requests are refused.
    var isClosing = false

    init(_ clock: any BrokerClock, _ options: BrokerOptions, _ log: Logger) {
        (self.clock, self.options, self.log) = (clock, options, log)
    }

    var now: Duration { clock.now }
}
