public import WatchwordProtocol

/// The user's netrc file.
public protocol NetrcPort: Sendable {
    /// Reads the logins that match `query` from `file`, in the order of the file; none if the file is not usable.
    ///
    /// Does not block its caller. `completion` is called exactly once, on any thread, at the latest after
    /// `Limits.netrcRead`.
    /// - Parameter file: an absolute path, or one that begins with `~/`.
    func logins(
        for query: NetrcQuery, in file: String, completion: @escaping @Sendable ([Netrc.Login]) -> Void)
}

/// A netrc lookup: the logins for one server.
public struct NetrcQuery: Sendable, Equatable {
    let origin: Origin

    /// Whether the entries of `machine` are for this server: host and port must be equal. As for a keyring item, a
    /// missing port means the default port of the scheme.
    public func includes(machine: String) -> Bool {
        guard let place = try? HostPort(machine[...]) else {
            // An IPv6 address without brackets, as in netrc files for curl.
            return "[\(machine.asciiLowercased)]" == origin.host.string && isAtDefaultPort
        }
        guard ExactText(place.host.asciiLowercased) == origin.host else { return false }
        return place.port.map { $0 == origin.port } ?? isAtDefaultPort  // guard: netrc-port
    }

    /// Whether `command` is configured for this server.
    public func matches(_ command: CredentialCommand) -> Bool {
        command.hosts.matches(host: origin.host, port: origin.port)
    }

    private var isAtDefaultPort: Bool { origin.port == origin.scheme.defaultPort }
}

/// Runs the commands that print passwords (`credentials.commands`).
public protocol CommandPort: Sendable {
    /// Runs `command`, and returns the first line of its output; `nil` if it failed, or printed nothing.
    ///
    /// Does not block its caller. `completion` is called exactly once, on any thread, at the latest shortly after
    /// `Limits.credentialCommand`.
    func password(from command: CredentialCommand, completion: @escaping @Sendable (Secret?) -> Void)
}
