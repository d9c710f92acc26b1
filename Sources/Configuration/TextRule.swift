public import WatchwordCore
public import WatchwordProtocol

/// A rule that is written as one string.
protocol TextRule: Sendable {
    /// - Throws: `Refusal` with the reason, and an example.
    init(_ text: String) throws(Refusal)

    /// The rule as it is written in the file.
    var text: String { get }

    /// Whether both rules cannot be in one list.
    func excludes(_ other: Self) -> Bool
}

/// Splits a rule at blanks.
private func words(_ text: String) -> [String] {
    text.split { $0 == " " || $0 == "\t" }.map(String.init)
}

extension ReleaseRule: TextRule {
    /// Parses a text such as "/usr/bin/watchword git.example.com *.corp.example".
    init(_ text: String) throws(Refusal) {
        let words = words(text)
        guard let first = words.first else { throw Refusal("empty string; \(Self.form)") }
        guard first.hasPrefix("/") else {
            throw Refusal("\"\(first.shortened)\" is not an absolute path; \(Self.form)")
        }
        guard words.count > 1 else { throw Refusal("missing host pattern after the program; \(Self.form)") }
        var hosts: [HostPattern] = []
        for word in words.dropFirst() { hosts.append(try HostPattern(word)) }
        self.init(program: first, hosts: hosts)
    }

    private static let form =
        "write the path of a program and host patterns, for example \"/usr/bin/watchword git.example.com\""

    var text: String { ([program] + hosts.map(\.description)).joined(separator: " ") }

    func excludes(_ other: Self) -> Bool { false }
}

extension CredentialCommand: TextRule {
    /// Parses a text such as "git.example.com bob /usr/bin/pass show work/git".
    init(_ text: String) throws(Refusal) {
        let words = words(text)
        guard words.count > 2 else { throw Refusal("host pattern, user or command missing; \(Self.form)") }
        let hosts = try HostPattern(words[0])
        let arguments = Array(words[2...])
        guard arguments[0].hasPrefix("/") else {
            throw Refusal("\"\(arguments[0].shortened)\" is not an absolute path; \(Self.form)")
        }
        // These characters are meant for a shell; passed as they are, they would change the arguments.
        let isForShell = arguments.contains { $0.contains { "\"'`$|;&<>\\\0".contains($0) } }
        guard !isForShell else {  // guard: command-without-a-shell
            throw Refusal("quotes and shell characters are not supported; put the command into a script")
        }
        self.init(hosts: hosts, user: ExactText(words[1]), arguments: arguments)
    }

    private static let form =
        "write a host pattern, a user and a command, for example \"git.example.com bob /usr/bin/pass show work/git\""

    var text: String { ([hosts.description, user.string] + arguments).joined(separator: " ") }

    func excludes(_ other: Self) -> Bool { hosts == other.hosts }
}

/// The authentication schemes for some hosts, in order of preference.
public struct SchemeOrder: Sendable, Equatable {
    /// The hosts to which the order applies.
    public var hosts: HostPattern
    /// The schemes, the preferred one first; other schemes are not used.
    public var order: [AuthenticationMethod]

    public init(hosts: HostPattern, order: [AuthenticationMethod]) { (self.hosts, self.order) = (hosts, order) }
}

extension SchemeOrder: TextRule {
    /// The names of the schemes in the file and in messages.
    private static let names: [(name: String, method: AuthenticationMethod)] = [
        ("negotiate", .negotiate), ("bearer", .bearer), ("digest", .httpDigest), ("basic", .httpBasic), ("ntlm", .ntlm),
    ]

    /// Parses a text such as "www.example.com digest basic".
    init(_ text: String) throws(Refusal) {
        let words = words(text)
        guard let first = words.first else { throw Refusal("empty string; \(Self.form)") }
        hosts = try HostPattern(first)
        guard words.count > 1 else { throw Refusal("no scheme after the host pattern; \(Self.form)") }
        order = []
        for word in words.dropFirst() {
            guard let method = Self.names.first(where: { $0.name == word })?.method else {
                throw Refusal(
                    "unknown scheme \"\(word.shortened)\"; use \(Self.names.map(\.name).joined(separator: ", "))")
            }
            guard !order.contains(method) else { throw Refusal("duplicate scheme \(word); remove one") }
            order.append(method)
        }
        // Port 80 is the port of http. For other ports it is unknown whether connections are encrypted.
        if hosts.port == 80, let place = order.firstIndex(of: .httpBasic), place + 1 < order.count {
            throw Refusal(
                "basic must not precede another scheme for port 80, because it sends the password over an unencrypted "
                    + "connection; put basic last")
        }
    }

    private static let form = "write a host pattern and schemes, for example \"www.example.com digest basic\""

    var text: String {
        ([hosts.description] + order.compactMap { method in Self.names.first { $0.method == method }?.name })
            .joined(separator: " ")
    }

    func excludes(_ other: Self) -> Bool { hosts == other.hosts }
}
