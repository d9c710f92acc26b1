/// An option of the configuration file. The parser, its suggestions and the manual page all use `ConfigurationOption.all`.
public struct ConfigurationOption: Sendable {
    /// The type of an option's value.
    public enum ValueType: Sendable, Equatable {
        /// A whole number within a range.
        case integer(ClosedRange<Int64>)
        /// `true` or `false`.
        case boolean
        /// One of these strings.
        case choice([String])
        /// A list of host patterns.
        case hosts
        /// The URL of a proxy, with a host and a port.
        case proxyURL
        /// A list of strings, each a host pattern and schemes.
        case schemeOrders
        /// A list of strings, each a program and host patterns.
        case releaseRules
        /// A list of strings, each a host pattern, a user and a command.
        case commands
        /// An absolute path.
        case path
        /// The address of a front.
        case address
        /// A list of ports.
        case ports
        /// A list of tables, each a site and the address of its front.
        case sites
        /// A list of tables, each host patterns and upstreams.
        case proxyRules
        /// The URL of a PAC file.
        case scriptURL
        /// An absolute path, or a path below the user's home directory.
        case homePath
    }

    /// The table and the name, separated by a dot.
    public let key: String
    public let type: ValueType
    /// The description in the manual page.
    public let summary: String

    /// Returns the value in `settings` as it is written in the file; `nil` if the option is not set.
    let written: @Sendable (_ settings: Settings) -> String?
    private let change: Change

    typealias Change =
        @Sendable (_ option: ConfigurationOption, _ value: TOMLValue, _ settings: inout Settings) -> [ValueProblem]

    init(
        _ key: String, _ type: ValueType, _ summary: String, written: @escaping @Sendable (Settings) -> String?,
        change: @escaping Change
    ) {
        (self.key, self.type, self.summary, self.written, self.change) = (key, type, summary, written, change)
    }

    /// Applies a value to the settings, or returns all problems of the value.
    func apply(_ value: TOMLValue, to settings: inout Settings) -> [ValueProblem] { change(self, value, &settings) }

    /// A problem of a value.
    struct ValueProblem {
        /// The line of the problem; `nil` for the line of the key.
        var line: Int?
        let text: String
    }

    /// The default as it would be written in the file; `nil` if the option is not set by default.
    public var defaultText: String? { written(Settings()) }

    /// The part of the key before the dot.
    public var table: String { String(key.prefix { $0 != "." }) }

    /// The part of the key after the dot.
    public var name: String { String(key.drop { $0 != "." }.dropFirst()) }
}

extension ConfigurationOption.ValueType {
    /// A description of the type, as a noun phrase.
    public var text: String {
        switch self {
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .boolean: "true or false"
        case .choice(let names): names.map { "\"\($0)\"" }.joined(separator: " or ")
        case .hosts: "a list of host patterns"
        case .proxyURL: "a URL \"http://host:port\", \"https://host:port\" or \"socks5h://host:port\""
        case .schemeOrders: "a list of strings, each a host pattern and schemes"
        case .releaseRules: "a list of strings, each a program and host patterns"
        case .commands: "a list of strings, each a host pattern, a user and a command"
        case .address: "an address \"127.0.0.1:port\" or \"[::1]:port\", or the absolute path of a Unix socket"
        case .ports: "a list of whole numbers from 1 to 65535"
        case .sites: "a list of tables, each with listen and url"
        case .proxyRules: "a list of tables, each with hosts and use"
        case .scriptURL: "a URL that begins with \"file:///\", \"http://\" or \"https://\""
        case .path: "an absolute path"
        case .homePath: "an absolute path or a path that begins with \"~/\""
        }
    }

    /// A valid example value.
    public var example: String {
        switch self {
        case .integer(let range): "\(range.lowerBound)"
        case .boolean: "true"
        case .choice(let names): "\"\(names.first ?? "")\""
        case .hosts: "[\"www.example.com\", \".example.org\"]"
        case .proxyURL: "\"http://proxy.example.com:3128\""
        case .releaseRules: "[\"/usr/bin/watchword git.example.com *.corp.example\"]"
        case .commands: "[\"git.example.com bob /usr/bin/pass show work/git\"]"
        case .schemeOrders: "[\"www.example.com negotiate digest\", \".example.org digest basic\"]"
        case .address: "\"127.0.0.1:3128\""
        case .ports: "[443, 8443]"
        case .sites: "[{ listen = \"127.0.0.1:8001\", url = \"https://intranet.example\" }]"
        case .proxyRules:
            "[{ hosts = [\".corp.example\"], use = [\"http://a.example:3128\", \"http://b.example:3128\"] }]"
        case .scriptURL: "\"http://wpad.example.com/proxy.pac\""
        case .path: "\"/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so\""
        case .homePath: "\"~/.netrc\""
        }
    }
}

extension ConfigurationOption {
    /// A valid example line for error messages.
    var advice: String { "for example, write: \(name) = \(defaultText ?? type.example)" }

    /// Returns the problem for a value of another type.
    func wrongType(_ value: TOMLValue) -> ValueProblem {
        ValueProblem(text: "expected \(type.text), found \(value.kindText); \(advice)")
    }
}

extension TOMLValue {
    /// The kind of the value, as a noun phrase. It does not quote the value, which may be secret.
    var kindText: String {
        switch self {
        case .string: "a string"
        case .integer: "a whole number"
        case .boolean: "true or false"
        case .real: "a number with a fraction or an exponent"
        case .strings(let texts): texts.isEmpty ? "an empty list" : "a list of strings"
        case .integers: "a list of whole numbers"
        case .table: "a table"
        case .tables: "a list of tables"
        case .other: "a date, a time, or a list of values of several types"
        }
    }
}
