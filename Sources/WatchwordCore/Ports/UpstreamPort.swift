/// The origin of the upstreams of servers that no rule of the configuration names.
public enum UpstreamSource: Sendable, Equatable {
    /// A PAC file, by its URL.
    case pac(String)
    /// The settings of the desktop.
    case desktop
}

/// The interface to the PAC file and the settings of the desktop.
///
/// No call blocks its caller. Each completion is called exactly once, on any thread, within seconds.
public protocol UpstreamPort: Sendable {
    /// Evaluates a PAC file, in another process.
    /// - Parameter url: the URL of a server, without path and query.
    /// - Parameter completion: receives the result of `FindProxyForURL`.
    func evaluate(
        _ script: PACScript, url: String, host: String,
        completion: @escaping @Sendable (Result<String, UpstreamFailure>) -> Void)

    /// Checks whether a PAC file can be loaded.
    /// - Parameter completion: receives the same file.
    func check(_ script: PACScript, completion: @escaping @Sendable (Result<PACScript, UpstreamFailure>) -> Void)

    /// Reads a PAC file by its absolute path.
    func readScript(_ path: String, completion: @escaping @Sendable (Result<PACScript, UpstreamFailure>) -> Void)

    /// Reads the settings of the desktop.
    func readDesktop(completion: @escaping @Sendable (Result<DesktopProxy, UpstreamFailure>) -> Void)
}
