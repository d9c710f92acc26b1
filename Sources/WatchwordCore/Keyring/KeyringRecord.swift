internal import WatchwordProtocol

/// What the broker knows of the keyring: whether it can be used, and which of its values servers have refused.
public struct KeyringRecord: Sendable {
    public enum State: Sendable, Equatable {
        /// Switched off in the configuration, or by the program's options.
        case disabled
        /// Not tried yet.
        case unknown
        case usable
        /// Not asked again before `until`, so that a keyring that never answers delays one fetch and not every one.
        case unusable(KeyringFailure, until: Duration)
    }

    private struct Refusal: Sendable {
        let space: ProtectionSpace
        let credential: LoginCredential
        /// Then it holds in every realm of the server.
        let isOfNetrc: Bool
        let since: Duration
    }

    private static let rememberedRefusals = 64

    public private(set) var state: State
    private var wasUsable = false
    private var refusals: [Refusal] = []
    private(set) var paths = KeyringPaths()

    public init(isEnabled: Bool = false) { state = isEnabled ? .unknown : .disabled }

    public mutating func setEnabled(_ isEnabled: Bool) {
        if !isEnabled {
            state = .disabled
        } else if state == .disabled {
            state = .unknown
        }
    }

    /// Whether asking it makes sense now.
    func isWorthAsking(now: Duration) -> Bool {
        switch state {
        case .disabled: false
        case .unknown, .usable: true
        case .unusable(_, let until): now >= until
        }
    }

    /// Whether what somebody wants to keep for good can be kept.
    public var canStore: Bool { state == .usable }

    /// Whether an accepted credential that is to be kept for good goes into the keyring. To those who were asked it was
    /// offered only where it can: what says more than that lets no window come up, and waits for no silent service.
    func mayStore(from source: CredentialSource, now: Duration) -> Bool {
        switch source {
        case .client, .agent: canStore
        case .explicit, .url: isWorthAsking(now: now)
        case .session, .keyring, .ambient, .netrc: false
        }
    }

    /// Whether this machine has no keyring, as far as is known: one that was there before has failed.
    var isAbsent: Bool {
        if case .unusable(let failure, _) = state { failure.kind == .absent && !wasUsable } else { false }
    }

    public mutating func noteUse() {
        guard state != .disabled else { return }
        (state, wasUsable) = (.usable, true)
    }

    public mutating func noteFailure(_ failure: KeyringFailure, now: Duration) {
        guard state != .disabled, failure.kind != .cancelled else { return }
        state = .unusable(failure, until: now + Self.pause(after: failure.kind))
    }

    /// A service that did not answer costs its limit each time; the others say at once how they are.
    private static func pause(after kind: KeyringFailure.Kind) -> Duration {
        switch kind {
        case .timedOut, .plainOnly: Limits.keyringPause
        case .absent, .locked, .dismissed, .lost, .cancelled, .refused: .zero
        }
    }

    // MARK: Values that were refused

    /// The keyring's value, or that of the netrc file, was refused: it is not sent again for a while, whatever becomes of it
    /// there.
    mutating func noteRefusal(
        of credential: LoginCredential, in space: ProtectionSpace, isOfNetrc: Bool = false, now: Duration
    ) {
        refusals.append(Refusal(space: space, credential: credential, isOfNetrc: isOfNetrc, since: now))
        let surplus = OriginShare.surplus(in: refusals, limit: Self.rememberedRefusals) { Challenger($0.space) }
        if let surplus { refusals.remove(at: surplus) }
        paths.forget(credential.path, at: Challenger(space))
    }

    /// Notes for which paths of a server there is something that may be sent.
    /// - Parameter time: of the wall clock, since 1970.
    mutating func notePaths(of items: [KeyringItem], at challenger: Challenger, time: Duration, now: Duration) {
        let usable = items.compactMap { StoredCredential($0, at: challenger) }.filter { stored in
            guard let credential = stored.credential else { return false }
            return !credential.isExpired(at: time) && !hasRefused(credential, at: challenger, now: now)
        }
        paths.note(usable, at: challenger)
    }

    /// See `KeyringPaths.overrule`.
    mutating func noteAnswer(for path: ExactText, in space: ProtectionSpace) { paths.overrule(for: path, in: space) }

    func hasRefused(_ credential: LoginCredential, in space: ProtectionSpace, now: Duration) -> Bool {
        refusals.contains {
            $0.space == space && $0.credential.isSame(as: credential) && now - $0.since < Limits.sessionLifetime
        }
    }

    /// In any realm, by any scheme.
    func hasRefused(_ credential: LoginCredential, at challenger: Challenger, now: Duration) -> Bool {
        refusals.contains {
            Challenger($0.space) == challenger && $0.credential.isSame(as: credential)
                && now - $0.since < Limits.sessionLifetime
        }
    }

    /// The server has changed its mind, or the user has. What it accepts says nothing for another login of the netrc file.
    mutating func forgetRefusals(in space: ProtectionSpace, accepting accepted: LoginCredential) {
        refusals.removeAll {
            $0.isOfNetrc
                ? Challenger($0.space) == Challenger(space) && $0.credential.isSame(as: accepted) : $0.space == space
        }
    }

    public mutating func forgetRefusals() { refusals = [] }
}
