public import WatchwordProtocol

/// The passphrase that a locked broker wants before it uses anything again, and how long whoever does not know it has to wait
/// between two tries: a second after the first, twice as long after each further one, at most a minute.
///
/// Times are durations since any one start; they never go back.
public struct PassphraseLock: Sendable {
    public enum Outcome: Sendable, Equatable {
        case open
        /// There is a passphrase, and none was given.
        case wanted
        /// The next try may come after that time.
        case wrong(wait: Duration)
        /// This one came before it, and was not looked at.
        case tooSoon(wait: Duration)
    }

    private static let firstWait = Duration.seconds(1)
    private static let longestWait = Duration.seconds(60)

    private var passphrase: Secret?
    private var wrongTries = 0
    private var nextTry = Duration.zero

    public init() {}

    /// From now on `passphrase` is wanted. `false`, and nothing has changed, when another one is wanted already.
    public mutating func set(_ passphrase: Secret?) -> Bool {
        guard let passphrase else { return true }
        if let own = self.passphrase { return own == passphrase }
        self.passphrase = passphrase
        (wrongTries, nextTry) = (0, .zero)
        return true
    }

    /// Whether it opens, after which nothing is wanted any more.
    public mutating func tryToOpen(with given: Secret?, now: Duration) -> Outcome {
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
