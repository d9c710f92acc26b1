/// A program that is given the passwords of some hosts, out of the configuration: git's helper, for instance.
public struct HandOutRule: Sendable, Equatable {
    /// The program file, as the kernel names it (proc(5), `/proc/PID/exe`).
    public var program: String
    /// The hosts that are meant.
    public var hosts: [HostPattern]

    public init(program: String, hosts: [HostPattern]) {
        self.program = program
        self.hosts = hosts
    }

    /// Whether `program` is given what is kept for the server, or the proxy, of `pattern`.
    public func covers(_ program: String, _ pattern: SpacePattern) -> Bool {
        program.utf8.elementsEqual(self.program.utf8)
            && hosts.contains { $0.matches(host: pattern.host, port: pattern.port) }
    }
}
