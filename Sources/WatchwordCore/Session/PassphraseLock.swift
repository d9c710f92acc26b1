public import WatchwordProtocol

/// The passphrase that unlocks the broker, and the delay after a wrong one: one second after the first, doubled after
/// each further one, at most a minute.
///
/// All times are durations since one arbitrary start and never decrease.
public struct PassphraseLock: Sendable {
    public enum Outcome: Sendable, Equatable {
        case open
        /// A passphrase is set, but none was supplied.
        case wanted
        /// The next attempt is allowed after `wait`.
        case wrong(wait: Duration)
        /// The passphrase was not checked: the next attempt is allowed after `wait`.
        case tooSoon(wait: Duration)
    }

    private static let firstWait = Duration.seconds(1)
    private static let longestWait = Duration.seconds(60)

    private var passphrase: Secret?
    private var wrongTries = 0
    private var nextTry = Duration.zero

    public init() {}

    /// Sets the passphrase. Returns `false`, without a change, if a different one is set already.
    public mutating func set(_ passphrase: Secret?) -> Bool {
        guard let passphrase else { return true }
        if let own = self.passphrase { return own == passphrase }
        self.passphrase = passphrase
        (wrongTries, nextTry) = (0, .zero)
        return true
    }

    /// Checks a passphrase. If it matches, removes the passphrase and the delay.
    public mutating func attemptUnlock(with given: Secret?, now: Duration) -> Outcome {
        guard let passphrase else { return .open }
        guard let given else { return .wanted }
        guard now >= nextTry else { return .tooSoon(wait: nextTry - now) }
        guard given == passphrase else {
            wrongTries += 1
            let wait = min(Self.longestWait, Self.firstWait * (1 << min(wrongTries - 1, 6)))
            nextTry = now + wait
            return .wrong(wait: wait)
        }
        self = PassphraseLock()
        return .open
    }
}
