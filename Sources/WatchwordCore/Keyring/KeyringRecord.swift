internal import WatchwordProtocol

/// The state of the keyring: whether it is usable, and which credentials of the keyring or the netrc file servers have
/// refused.
public struct KeyringRecord: Sendable {
    public enum State: Sendable, Equatable {
        /// Switched off in the configuration or on the command line.
        case disabled
        /// The keyring was not used yet.
        case unknown
        case usable
        /// The keyring is not used again before `until`, so that an unresponsive service delays one fetch, not all.
        case unusable(KeyringFailure, until: Duration)
    }

    private struct Refusal: Sendable {
        let space: ProtectionSpace
        let credential: LoginCredential
        /// Set for a credential of the netrc file, which has no realm: the refusal applies to all realms of the server.
        let isOfNetrc: Bool
        let since: Duration
    }

    private static let rememberedRefusals = 64

    public private(set) var state: State
    private var wasUsable = false
    private var refusals = ChallengerTable<[Refusal]>()
    private(set) var paths = KeyringPaths()

    public init(isEnabled: Bool = false) { state = isEnabled ? .unknown : .disabled }

    public mutating func setEnabled(_ isEnabled: Bool) {
        if !isEnabled {
            state = .disabled
        } else if state == .disabled {
            state = .unknown
        }
    }

    /// Whether to query the keyring now.
    func shouldQuery(now: Duration) -> Bool {
        switch state {
        case .disabled: false
        case .unknown, .usable: true
        case .unusable(_, let until): now >= until
        }
    }

    /// Whether a permanent credential can be stored.
    public var canStore: Bool { state == .usable }

    /// Whether to write an accepted permanent credential to the keyring. For an answer of a respondent the keyring must
    /// be known to be usable, because `permanent` was offered only then; for a credential of the request the keyring
    /// may be untested.
    func mayStore(from source: CredentialSource, now: Duration) -> Bool {
        switch source {
        case .client, .agent: canStore
        case .explicit, .url: shouldQuery(now: now)
        case .session, .keyring, .ambient, .netrc, .command: false
        }
    }

    /// Whether this machine has no keyring, as far as known. A keyring that was used before counts as failed, not as
    /// absent.
    var isAbsent: Bool {
        if case .unusable(let failure, _) = state { failure.kind == .absent && !wasUsable } else { false }
    }

    public mutating func recordUse() {
        guard state != .disabled else { return }
        (state, wasUsable) = (.usable, true)
    }

    public mutating func recordFailure(_ failure: KeyringFailure, now: Duration) {
        guard state != .disabled, failure.kind != .cancelled else { return }
        state = .unusable(failure, until: now + Self.pause(after: failure.kind))
    }

    /// Returns how long the service is not used after a failure. There is a pause after a timeout, which would
    /// otherwise delay each call, and for a service without encryption, which will not change soon; other failures cost
    /// no time.
    private static func pause(after kind: KeyringFailure.Kind) -> Duration {
        switch kind {
        case .timedOut, .plainOnly: Limits.keyringPause
        case .absent, .locked, .dismissed, .lost, .cancelled, .refused: .zero
        }
    }

    // MARK: Refused credentials

    /// Records that a credential was refused that is from the keyring or the netrc file, or may be there as well. The same
    /// credential is not sent again from there during `Limits.sessionLifetime`.
    mutating func recordRefusal(
        of credential: LoginCredential, in space: ProtectionSpace, isOfNetrc: Bool = false, now: Duration
    ) {
        let challenger = Challenger(space)
        let refusal = Refusal(space: space, credential: credential, isOfNetrc: isOfNetrc, since: now)
        refusals.append(refusal, at: challenger, limit: Self.rememberedRefusals)
        paths.forget(credential.path, at: challenger)
    }

    /// Records the paths of a server for which there are usable items.
    /// - Parameter time: the wall-clock time since 1970.
    mutating func recordPaths(of items: [KeyringItem], at challenger: Challenger, time: Duration, now: Duration) {
        let usable = items.compactMap { StoredCredential($0, at: challenger) }.filter { stored in
            guard let credential = stored.credential else { return false }
            return !credential.isExpired(at: time) && !hasRefused(credential, at: challenger, now: now)
        }
        paths.record(usable, at: challenger)
    }

    /// See `KeyringPaths.overrule`.
    mutating func recordAnswer(for path: ExactText, in space: ProtectionSpace) { paths.overrule(for: path, in: space) }

    func hasRefused(_ credential: LoginCredential, in space: ProtectionSpace, now: Duration) -> Bool {
        refusals[Challenger(space)].contains {
            $0.space == space && $0.credential.isSame(as: credential) && now - $0.since < Limits.sessionLifetime
        }
    }

    /// Whether the credential was refused in any realm, with any scheme.
    func hasRefused(_ credential: LoginCredential, at challenger: Challenger, now: Duration) -> Bool {
        refusals[challenger].contains {
            $0.credential.isSame(as: credential) && now - $0.since < Limits.sessionLifetime
        }
    }

    /// Drops the refusals in `space`, because the server has accepted a credential. Refusals of netrc credentials are
    /// dropped only for this credential, but in all spaces of the server.
    mutating func forgetRefusals(in space: ProtectionSpace, accepting accepted: LoginCredential) {
        refusals[Challenger(space)].removeAll {
            $0.isOfNetrc ? $0.credential.isSame(as: accepted) : $0.space == space
        }
    }

    public mutating func forgetRefusals() { refusals = ChallengerTable() }
}
