import WatchwordProtocol

@testable import WatchwordCore

/// The session cache with URLs in place of origins and paths.
extension SessionCache {
    @discardableResult
    mutating func remember(
        _ credential: LoginCredential, for space: ProtectionSpace, owner: Partition? = nil, at url: FetchURL,
        digest: DigestChallenge?, now: Duration
    ) -> Bool {
        remember(credential, for: space, owner: owner, path: url.path, digest: digest, now: now)
    }

    func preemptiveEntry(
        for url: FetchURL, user: Account? = nil, owner: Partition? = nil, now: Duration
    ) -> AcceptedLogin? {
        preemptiveEntry(at: .server(url.origin), path: url.path, user: user, owner: owner, now: now)
    }

    func credential(for space: ProtectionSpace, user: Account? = nil, at origin: Origin, now: Duration)
        -> LoginCredential?
    {
        credential(for: space, user: user, at: .server(origin), now: now)
    }

    @discardableResult
    mutating func forget(_ refused: LoginCredential, for space: ProtectionSpace, at origin: Origin) -> Bool {
        forget(refused, for: space, at: .server(origin))
    }
}

extension KeyringMatch {
    init(_ items: [KeyringItem], for space: ProtectionSpace, at url: FetchURL, user: Account?) {
        self.init(items, for: space, at: .server(url.origin), path: url.path, user: user)
    }
}
