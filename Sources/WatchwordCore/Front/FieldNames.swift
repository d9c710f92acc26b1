internal import WatchwordProtocol

/// A few names of header fields. Looking one up allocates nothing, unlike in a set of strings: each field of each request and
/// response is looked up.
struct FieldNames {
    private let names: [String]

    init(_ names: [String]) { self.names = names }

    /// Without regard to ASCII case.
    func contains(_ name: String) -> Bool { names.contains { $0.equalsIgnoringASCIICase(name) } }
}

extension FieldNames: ExpressibleByArrayLiteral {
    init(arrayLiteral names: String...) { self.init(names) }
}
