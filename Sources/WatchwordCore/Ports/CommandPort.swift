public import WatchwordProtocol

/// Runs the commands that print passwords (`credentials.commands`).
public protocol CommandPort: Sendable {
    /// Runs `command`, and returns the first line of its output; `nil` if it failed, or printed nothing.
    ///
    /// Does not block its caller. `completion` is called exactly once, on any thread, at the latest shortly after
    /// `Limits.credentialCommand`.
    func password(from command: CredentialCommand, completion: @escaping @Sendable (Secret?) -> Void)
}
