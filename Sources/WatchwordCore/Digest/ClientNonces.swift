internal import WatchwordProtocol

/// The source of client nonces: at least 128 random bits as text, fresh for each response (RFC 7616 section 5.12).
public enum ClientNonces: Sendable {
    case random
    /// Always the same text, for tests.
    case fixed(String)

    func next() -> String {
        switch self {
        case .random: RandomText.make128Bits()
        case .fixed(let nonce): nonce
        }
    }
}
