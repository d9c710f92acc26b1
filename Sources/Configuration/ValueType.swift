internal import WatchwordProtocol

/// The values that an option can have.
struct ValueType: Sendable, Equatable {
    /// A description, as a noun phrase.
    let text: String
    /// A valid value, as it is written in the file.
    let example: String
    /// The range of a number.
    var range: ClosedRange<Int64>?

    init(_ text: String, example: String) { (self.text, self.example) = (text, example) }

    static func integer(_ range: ClosedRange<Int64>, example: Int64? = nil) -> ValueType {
        var type = ValueType(
            "a whole number from \(range.lowerBound) to \(range.upperBound)", example: "\(example ?? range.lowerBound)")
        type.range = range
        return type
    }

    static func choice<Value: CaseIterable & RawRepresentable<String>>(
        _ values: Value.Type, example: Value
    ) -> ValueType {
        let names = values.allCases.map { "\"\($0.rawValue)\"" }
        return ValueType(names.joined(separator: " or "), example: "\"\(example.rawValue)\"")
    }

    static let boolean = ValueType("true or false", example: "true")
    static let path = ValueType("an absolute path", example: "\"/usr/lib/x86_64-linux-gnu/opensc-pkcs11.so\"")

    static func homePath(example: String) -> ValueType {
        ValueType("an absolute path or a path that begins with \"~/\"", example: "\"\(example)\"")
    }

    static let hosts = ValueType("a list of host patterns", example: "[\"www.example.com\", \".example.org\"]")
    static let proxyURL = ValueType(
        "a URL \"http://host:port\", \"https://host:port\" or \"socks5h://host:port\"",
        example: "\"http://proxy.example.com:3128\"")
    static let scriptURL = ValueType(
        "a URL that begins with \"file:///\", \"http://\" or \"https://\", without user and password",
        example: "\"http://wpad.example.com/proxy.pac\"")
    static let schemeOrders = ValueType(
        "a list of strings, each a host pattern and schemes",
        example: "[\"www.example.com negotiate digest\", \".example.org digest basic\"]")
    static let releaseRules = ValueType(
        "a list of strings, each a program and host patterns",
        example: "[\"/usr/bin/watchword git.example.com *.corp.example\"]")
    static let commands = ValueType(
        "a list of strings, each a host pattern, a user and a command",
        example: "[\"git.example.com bob /usr/bin/pass show work/git\"]")
    static let address = ValueType(
        "an address \"127.0.0.1:port\" or \"[::1]:port\", or the absolute path of a Unix socket",
        example: "\"127.0.0.1:3128\"")
    static let ports = ValueType("a list of whole numbers from 1 to 65535", example: "[443, 8443]")
    static let sites = ValueType(
        "a list of tables, each with listen and url",
        example: "[{ listen = \"127.0.0.1:8001\", url = \"https://intranet.example\" }]")
    static let proxyRules = ValueType(
        "a list of tables, each with hosts and use",
        example: "[{ hosts = [\".corp.example\"], use = [\"http://a.example:3128\", \"http://b.example:3128\"] }]")
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
