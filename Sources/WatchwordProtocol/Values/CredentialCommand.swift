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
