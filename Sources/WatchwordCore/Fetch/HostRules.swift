public import WatchwordProtocol

/// From which hosts anything may be fetched.
public struct HostRules: Sendable, Equatable {
    /// `nil` allows all.
    public var allowed: [HostPattern]?
    /// Wins over `allowed`.
    public var denied: [HostPattern]

    public init(allowed: [HostPattern]? = nil, denied: [HostPattern] = []) {
        self.allowed = allowed
        self.denied = denied
    }

    public func allow(_ origin: Origin) -> Bool {
        func matches(_ pattern: HostPattern) -> Bool { pattern.matches(host: origin.host, port: origin.port) }
        return !denied.contains(where: matches) && (allowed?.contains(where: matches) ?? true)
    }
}
