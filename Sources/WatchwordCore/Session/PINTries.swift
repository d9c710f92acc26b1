internal import WatchwordProtocol

/// Counts the consecutive wrong PINs sent to one token, across all fetches. Tokens lock themselves after a few wrong
/// PINs, some after three; the broker stops before that (SECURITY-RULES X5).
public struct PINTries: Sendable, Equatable {
    /// The state of the PIN as the token reports it (PKCS #11, the flags `CKF_USER_PIN_…` of `CK_TOKEN_INFO`).
    public struct Flags: Sendable, Equatable {
        /// At least one wrong PIN was sent since the last login, by any program.
        public var isCountLow = false
        /// One more wrong PIN locks the token.
        public var isFinalTry = false
        public var isLocked = false

        public init() {}
    }

    /// The reason why no PIN may be tried now.
    public enum NotTriedReason: Sendable, Equatable {
        case locked, finalTry, tooMany
    }

    private var wrong = 0
    /// Whether the token has reported (`isCountLow`) a wrong PIN sent by this broker.
    private var isReporting = false

    public init() {}

    /// Returns why no PIN may be tried now; `nil` if one may.
    public mutating func reasonNotToTry(_ flags: Flags) -> NotTriedReason? {  // guard: pin-tries
        // Another program has logged in, which resets the count of the token.
        if isReporting && !flags.isCountLow { self = PINTries() }
        if wrong > 0 && flags.isCountLow { isReporting = true }
        if flags.isLocked { return .locked }
        if flags.isFinalTry { return .finalTry }
        return wrong < Limits.tokenPINTries ? nil : .tooMany
    }

    /// Counts a wrong PIN. The first wrong PIN of this broker counts as two if the token had already reported one of
    /// another program.
    /// - Parameter before: the flags before the attempt.
    public mutating func recordWrong(_ before: Flags) {
        wrong += wrong == 0 && before.isCountLow ? 2 : 1
    }

    public mutating func recordRight() { self = PINTries() }
}
