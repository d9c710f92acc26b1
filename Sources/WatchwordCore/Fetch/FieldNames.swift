internal import WatchwordProtocol

/// A few names of header fields. Looking one up allocates nothing, unlike in a set of strings: each field of each request and
/// response is looked up.
struct FieldNames {
    private let names: [String]
    /// A bit for each length of a name: most fields are excluded by it.
    private let lengths: UInt64

    init(_ names: [String]) {
        self.names = names
        lengths = names.reduce(0) { $0 | Self.bit(for: $1) }
    }

    /// Without regard to ASCII case.
    func contains(_ name: String) -> Bool {
        lengths & Self.bit(for: name) != 0 && names.indices.contains { names[$0].equalsIgnoringASCIICase(name) }
    }

    private static func bit(for name: String) -> UInt64 { 1 << min(name.utf8.count, 63) }
}

extension FieldNames: ExpressibleByArrayLiteral {
    init(arrayLiteral names: String...) { self.init(names) }
}
