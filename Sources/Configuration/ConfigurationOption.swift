/// One option of the configuration file. Everything that knows options (the parser, its suggestions, the manual page) gets
/// them from `ConfigurationOption.all`.
public struct ConfigurationOption: Sendable {
    /// What may stand behind the key.
    public enum ValueType: Sendable, Equatable {
        /// A whole number within a range.
        case integer(ClosedRange<Int64>)
        /// `true` or `false`.
        case boolean
        /// One of these strings.
        case choice([String])
        /// A list of host patterns.
        case hosts
        /// A URL with a scheme that proxies speak, a host and a port.
        case proxyURL
        /// A list of strings, each a host pattern and schemes.
        case schemeOrders
        case handOuts
        /// A file by its absolute path.
        case path
        /// A file by its absolute path, or by one below the user's home.
        case homePath
    }

    /// The table and the name in it, with a dot in between.
    public let key: String
    /// What may stand behind the key.
    public let type: ValueType
    /// A sentence or two.
    public let summary: String

    /// The value in `settings` as it is written in the file; `nil` for one that comes only from leaving the option out.
    let written: @Sendable (_ settings: Settings) -> String?
    private let change: Change

    typealias Change =
        @Sendable (_ option: ConfigurationOption, _ value: TOMLValue, _ settings: inout Settings) -> [Objection]

    init(
        _ key: String, _ type: ValueType, _ summary: String, written: @escaping @Sendable (Settings) -> String?,
        change: @escaping Change
    ) {
        (self.key, self.type, self.summary, self.written, self.change) = (key, type, summary, written, change)
    }

    /// Changes the settings to a value, or says everything that is wrong with it.
    func apply(_ value: TOMLValue, to settings: inout Settings) -> [Objection] { change(self, value, &settings) }

    /// What is wrong with a value.
    struct Objection {
        /// `nil` for the line of the key.
        var line: Int?
        let text: String
    }

    /// The default as it would be written in the file; `nil` where only leaving the option out gives it.
    public var defaultText: String? { written(Settings()) }

    /// The part of the key before the dot.
    public var table: String { String(key.prefix { $0 != "." }) }

    /// The part of the key after the dot.
    public var name: String { String(key.drop { $0 != "." }.dropFirst()) }
}

extension ConfigurationOption.ValueType {
    /// What is expected, as a noun phrase.
    public var text: String {
        switch self {
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .boolean: "true or false"
        case .choice(let names): names.map { "\"\($0)\"" }.joined(separator: " or ")
        case .hosts: "a list of host patterns"
        case .proxyURL: "a URL \"http://host:port\", \"https://host:port\" or \"socks5h://host:port\""
        case .schemeOrders: "a list of strings, each a host pattern and schemes"
        case .handOuts: "a list of strings, each a program and host patterns"
        case .path: "a path from \"/\" on"
        case .homePath: "a path from \"/\" or \"~/\" on"
        }
    }

    /// A value that could stand in the file.
    public var example: String {
        switch self {
        case .integer(let range): "\(range.lowerBound)"
        case .boolean: "true"
        case .choice(let names): "\"\(names.first ?? "")\""
        case .hosts: "[\"www.example.com\", \".example.org\"]"
        case .proxyURL: "\"http://proxy.example.com:3128\""
        case .handOuts: "[\"/usr/bin/watchword git.example.com *.corp.example\"]"
        case .schemeOrders: "[\"www.example.com negotiate digest\", \".example.org digest basic\"]"
        case .path: "\"/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so\""
        case .homePath: "\"~/.netrc\""
        }
    }
}

extension ConfigurationOption {
    /// What to write, with a value that is sure to be taken.
    var advice: String { "Write for example: \(name) = \(defaultText ?? type.example)" }

    /// The objection to a value of another type.
    func wrongType(_ value: TOMLValue) -> Objection {
        Objection(text: "This is \(value.kindText), and \(type.text) is expected. \(advice)")
    }
}

extension TOMLValue {
    /// As a noun phrase; never the value itself, which may be what nobody is to read.
    var kindText: String {
        switch self {
        case .string: "a string"
        case .integer: "a whole number"
        case .boolean: "true or false"
        case .real: "a number with a fraction or an exponent"
        case .strings(let texts): texts.isEmpty ? "an empty list" : "a list of strings"
        case .table: "a table"
        case .other: "a date, a time, or a list of other things than strings"
        }
    }
}
