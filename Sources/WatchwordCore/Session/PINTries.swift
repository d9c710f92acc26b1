internal import WatchwordProtocol

/// The wrong PINs that one token was given in a row, across all fetches. Tokens lock themselves after a few, some after three;
/// no further PIN is tried before that happens (security rule X5).
public struct PINTries: Sendable, Equatable {
    /// The state of a token's PIN as the token itself reports it (PKCS #11, the flags `CKF_USER_PIN_…` of `CK_TOKEN_INFO`).
    public struct Flags: Sendable, Equatable {
        /// At least one wrong PIN was given since the last login, by whatever program.
        public var isCountLow = false
        /// One more wrong PIN locks the token.
        public var isFinalTry = false
        public var isLocked = false

        public init() {}
    }

    public enum Objection: Sendable, Equatable {
        case locked, finalTry, tooMany
    }

    private var wrong = 0
    /// The token has reported one of our wrong PINs.
    private var isReporting = false

    public init() {}

    /// Why no PIN is to be tried now; `nil` when one may be.
    public mutating func objection(_ flags: Flags) -> Objection? {
        if isReporting && !flags.isCountLow { self = PINTries() }  // Another program has logged in since then.
        if wrong > 0 && flags.isCountLow { isReporting = true }
        if flags.isLocked { return .locked }
        if flags.isFinalTry { return .finalTry }
        return wrong < Limits.tokenPINTries ? nil : .tooMany
    }

    /// - Parameter before: the flags before the try. A wrong PIN that the token had reported by then counts, too.
    public mutating func noteWrong(_ before: Flags) {
        wrong += wrong == 0 && before.isCountLow ? 2 : 1
    }

    public mutating func noteRight() { self = PINTries() }
}
