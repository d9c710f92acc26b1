public import WatchwordProtocol

/// The user's netrc file.
public protocol NetrcPort: Sendable {
    /// Reads the logins that `query` includes out of `file`, in the order of the file; none where the file cannot be used.
    ///
    /// Does not block its caller. `completion` is called exactly once, on any thread, at the latest after `Limits.netrcRead`.
    /// - Parameter file: an absolute path, or one that begins with `~/`.
    func logins(
        for query: NetrcQuery, in file: String, completion: @escaping @Sendable ([Netrc.Login]) -> Void)
}

/// A look-up in a netrc file: the logins for one server.
public struct NetrcQuery: Sendable, Equatable {
    let origin: Origin

    /// Whether the entries of `machine` are for this server: the host is the same, and so is the port. An entry without a port
    /// is for the default port of the scheme, as is an item of the keyring without one.
    public func includes(machine: String) -> Bool {
        guard let place = try? HostPort(machine[...]) else {
            // An IPv6 address without brackets, as curl's users write it.
            return "[\(machine.asciiLowercased)]" == origin.host.string && isAtDefaultPort
        }
        guard ExactText(place.host.asciiLowercased) == origin.host else { return false }
        return place.port.map { $0 == origin.port } ?? isAtDefaultPort
    }

    private var isAtDefaultPort: Bool { origin.port == origin.scheme.defaultPort }
}
