public import WatchwordProtocol

/// A rule of the configuration that releases the passwords of some hosts to a program, such as git's credential helper.
public struct ReleaseRule: Sendable, Equatable {
    /// The path of the program file as reported by the kernel (proc(5), `/proc/PID/exe`).
    public var program: String
    public var hosts: [HostPattern]

    public init(program: String, hosts: [HostPattern]) {
        self.program = program
        self.hosts = hosts
    }

    /// Whether credentials for the server or proxy of `pattern` are released to `program`.
    public func covers(_ program: String, _ pattern: SpacePattern) -> Bool {
        program.utf8.elementsEqual(self.program.utf8)
            && hosts.contains { $0.matches(host: pattern.host, port: pattern.port) }
    }
}

/// A command of the configuration that prints the password of a user at some hosts, such as `pass show work/git`.
public struct CredentialCommand: Sendable, Equatable {
    public var hosts: HostPattern
    public var user: ExactText
    /// The absolute path of the program, followed by its arguments. No shell is used.
    public var arguments: [String]

    public init(hosts: HostPattern, user: ExactText, arguments: [String]) {
        (self.hosts, self.user, self.arguments) = (hosts, user, arguments)
    }

    /// The path of the program.
    public var program: String { arguments.first ?? "" }
}
