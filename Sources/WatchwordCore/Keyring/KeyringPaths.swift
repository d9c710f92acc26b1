internal import WatchwordProtocol

/// The paths for which the keyring had items of their own when it was last looked up, by server.
///
/// A credential for the whole server that the session has is not used there: the item goes first (semantics rule 18).
struct KeyringPaths: Sendable {
    private static let servers = 256

    private var paths: [Challenger: [ExactText]] = [:]

    /// - Parameter usable: all that the keyring has for the server, and that may be sent.
    mutating func note(_ usable: [LoginCredential], at challenger: Challenger) {
        let named = usable.compactMap(\.path)
        if named.isEmpty {
            paths[challenger] = nil
        } else if paths.count < Self.servers || paths[challenger] != nil {
            paths[challenger] = named
        }
    }

    /// The server has refused what was there for the path.
    mutating func forget(_ path: ExactText?, at challenger: Challenger) {
        guard let path else { return }
        paths[challenger]?.removeAll { $0 == path }
    }

    /// Whether there may be an item for `requested` that is narrower than `credential`.
    func hasNarrower(than credential: LoginCredential, for requested: ExactText, at challenger: Challenger) -> Bool {
        (paths[challenger] ?? []).contains { path in
            path.utf8.count > credential.pathLength && LoginCredential.path(path, covers: requested)
        }
    }
}
